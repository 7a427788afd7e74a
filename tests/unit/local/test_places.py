from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from functions.local.places import AlreadyRunningError, LocalInstallation, Places

if TYPE_CHECKING:
    from pathlib import Path

HOLDS = """
import sys, time
from pathlib import Path
from functions.local.places import LocalInstallation, Places
places = Places(Path(sys.argv[1]))
with places.held():
    places.save(LocalInstallation(endpoint="http://127.0.0.1:1", receiver="http://127.0.0.1:2", pid=0))
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def places(tmp_path: Path) -> Places:
    places = Places(tmp_path)
    places.make()
    return places


def an_installation(pid: int = 1) -> LocalInstallation:
    return LocalInstallation(endpoint="http://127.0.0.1:1", receiver="http://127.0.0.1:2", pid=pid)


def test_an_installation_runs_as_long_as_somebody_holds_the_folder(places: Places) -> None:
    assert places.running() is None
    with places.held():
        assert places.running() is None  # it has started nothing yet
        places.save(an_installation())
        assert places.running() == an_installation()
    assert places.running() is None


def test_what_a_dead_process_left_behind_does_not_run_whoever_has_its_number_now(places: Places) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(places.folder.parent)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        found = places.running()
        assert found is not None
        with (
            pytest.raises(AlreadyRunningError, match=rf"\(process {process.pid}\): use it, or stop it first"),
            places.held(),
        ):
            pass
        process.kill()
        process.wait()
    assert places.installation.exists()
    assert places.running() is None
    with places.held():
        assert places.running() is None, "what the dead one wrote is not taken for ours"


def test_of_two_that_start_at_once_one_is_refused(places: Places) -> None:
    together, refused = Barrier(2, timeout=30), Barrier(2, timeout=30)

    def start() -> bool:
        together.wait()
        try:
            with places.held():
                refused.wait()
        except AlreadyRunningError:
            refused.wait()
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(lambda _: start(), range(2))) == [False, True]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"endpoint": "x", "unknown": 1}'])
def test_a_file_that_cannot_be_read_is_no_installation(places: Places, text: str) -> None:
    with places.held():
        places.installation.write_text(text)
        assert places.running() is None
