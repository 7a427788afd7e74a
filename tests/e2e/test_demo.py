"""The README's first command, really run."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from tests.support import readme
from tests.support.demo import COMMAND, Demo


@pytest.mark.slow
def test_demo_shows_one_effect_per_unit_one_alert_and_what_cron_does(demo: Demo):
    ended = demo.ended
    assert ended.returncode == 0, ended.stderr[-3000:]
    report = json.loads(ended.stdout)
    ordinary, duplicate, silence = report["drills"]
    assert report["ok"] is True
    assert [drill["effects_at_receiver"] for drill in report["drills"]] == [1, 1, 1]
    assert (ordinary["alerts"], duplicate["alerts"], silence["alerts"]) == ([], [], ["worker_lost"])
    assert (duplicate["duplicates_recorded"], silence["attempts"]) == (1, 2)
    assert silence["detected_after_s"] > 0
    assert all(accident["effects_at_receiver"] == 2 for accident in report["bare_cron"].values())


@pytest.mark.slow
def test_demo_tells_the_story_that_the_readme_shows(demo: Demo):
    ended = demo.ended
    shown = readme.block_of("demo", readme.README.read_text())
    told = [readme.shape(line) for line in ended.stderr.rstrip().splitlines()]
    # The alert may come before or after the takeover, by where the monitor's turn falls.
    assert sorted(told) == sorted(readme.shape(line) for line in shown.splitlines())


@pytest.mark.slow
def test_demo_says_its_first_line_within_two_seconds():
    began = time.monotonic()
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        took = time.monotonic() - began
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()
    assert "no AWS account" in line
    assert took < 2
