"""The estimate: every line from its own quantities, and nothing that is not in the files."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from functions.cli.cost import command
from functions.cli.costs import MONTH, Line, StageOptions, alarm_metrics, estimate
from functions.kit.clock import SettableClock
from functions.schedules.model import Pool
from infra.config import StageConfig
from tests.support.commands import Run, runner
from tests.support.jobs import a_job
from tests.support.project import a_project

DEFAULT = {"default": Pool()}
DEV = StageOptions(alarms="switches", dashboard=False)
JOBS = """
    [defaults]
    owner = "ops"
    run   = "work:main"

    [jobs.hourly]
    schedule   = "0 * * * *"
    partitions = ["eu", "us"]

    [jobs.off]
    schedule = "* * * * *"
    enabled  = false

    [jobs.elsewhere]
    schedule = "* * * * *"
    stages   = ["dev"]
"""
STAGES = """
    [stages.prod]

    [stages.dev]
    alarms    = "switches"
    dashboard = false
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = a_project(tmp_path)
    project.write(JOBS)
    (project.root / "infra").mkdir()
    (project.root / "infra" / "stages.toml").write_text(STAGES)
    return project.root


def of(lines: list[Line]) -> dict[str, float]:
    return {line.name: line.usd for line in lines}


def fixed(stage: StageOptions, pools: int = 1) -> dict[str, float]:
    return of(estimate({}, {str(number): Pool() for number in range(pools)}, {}, stage, seconds=1))


def test_a_million_runs_of_two_seconds_come_to_what_they_do_by_hand():
    """Per run, in millionths of a dollar.

    11 writes at 0.625 and 22 reads at 0.125: 9.625.  Two invocations at 0.2: 0.4.  2.3 s on half a GB at 13.3334:
    15.33341.  Five SQS requests at 0.4: 2.  1.5 KB of logs at 0.5 per GB: 0.75.  3 KB for 400 / 30 months at 0.45: 18.
    """
    jobs = {"charge": a_job("* * * * *", name="charge")}
    lines = of(estimate(jobs, DEFAULT, {"charge": 1_000_000}, DEV, seconds=2))
    assert lines["job charge"] == pytest.approx(9.625 + 0.4 + 15.33341 + 2 + 0.75 + 18)


def test_an_idle_minute_comes_to_what_it_does_by_hand():
    """43,200 ticks, in millionths: one write, two reads, an invocation, 0.05 GB s, half a KB of logs, the trigger."""
    assert fixed(DEV)["ticks"] == pytest.approx(0.0432 * (0.625 + 0.25 + 0.2 + 0.66667 + 0.25 + 1))


def test_an_idle_stage_with_all_alarms_is_within_two_and_six_dollars_and_dev_is_small_change():
    assert 2 < sum(fixed(StageOptions(dashboard=False)).values()) < sum(fixed(StageOptions()).values()) < 7.5
    assert sum(fixed(DEV).values()) < 2


def test_alarms_dashboard_keys_and_pools_change_their_own_lines():
    usual = fixed(StageOptions())
    assert (usual["alarms"], usual["dashboard"], usual["keys"]) == (pytest.approx(2.9), 3.0, 0.0)
    assert fixed(DEV)["alarms"] == pytest.approx(0.4)
    assert fixed(StageOptions(alarms="none"))["alarms"] == 0
    assert fixed(StageOptions(customer_key=True))["keys"] == 2
    assert fixed(StageOptions(), pools=2)["queues"] == pytest.approx(2 * usual["queues"])
    sharded = fixed(StageOptions(shards=3))
    assert sharded["ticks"] == pytest.approx(3 * usual["ticks"])
    assert (sharded["sweeps"], sharded["passes"]) == (usual["sweeps"], usual["passes"]), "one for all shards"
    assert alarm_metrics(StageOptions(), 2) == 29 + 3


def test_endpoints_cost_by_their_services_and_zones():
    """Two subnets with SQS and SSM, 720 hours at a cent: $28.80.  The pool beside them has secrets of its own."""
    vpc = {"id": "vpc-1", "subnets": ["subnet-1", "subnet-2"], "security_groups": ["sg-1"], "route_tables": ["rtb-1"]}
    inside = {"a": Pool(name="a", vpc=vpc), "b": Pool(name="b", vpc=vpc, secrets={"KEY": "ssm:/key"})}
    pools = {**inside, "c": Pool(name="c", secrets={"KEY": "secretsmanager:key"})}
    assert of(estimate({}, pools, {}, StageOptions(endpoints=("a",)), seconds=1))["endpoints"] == pytest.approx(28.8)
    for none in ((), ("elsewhere",)):
        assert "endpoints" not in of(estimate({}, pools, {}, StageOptions(endpoints=none), seconds=1))


def test_a_job_costs_by_the_memory_of_its_own_pool():
    jobs = {"charge": a_job("* * * * *", name="charge", pool="heavy")}

    def cost(memory: int) -> float:
        pools = {"heavy": Pool(name="heavy", memory=memory)}
        return of(estimate(jobs, pools, {"charge": 1_000_000}, DEV, seconds=2))["job charge"]

    assert cost(1536) - cost(512) == pytest.approx(2.3 * 13.3334), "a GB more, for its time and ours around it"


def test_slots_that_a_clock_change_skips_cost_nothing(root: Path):
    """In Berlin there is no 02:30 on 29 March."""
    (root / "functions" / "jobs" / "jobs.toml").write_text(
        """
        [defaults]
        owner = "ops"
        run   = "work:main"
        [jobs.nightly]
        schedule = "30 2 * * *"
        timezone = "Europe/Berlin"
        dst_gap  = "skip"
        """
    )
    ran = CliRunner().invoke(
        command,
        ["--root", str(root), "--stage", "prod", "--json"],
        obj=SettableClock(datetime(2026, 3, 10, tzinfo=UTC)),
    )
    whats = {line["name"]: line["what"] for line in json.loads(ran.stdout)["lines"]}
    assert whats["job nightly"].startswith("29 runs")


def test_what_a_stage_leaves_out_is_as_it_is_built():
    config = StageConfig()
    assert StageOptions() == StageOptions(
        alarms=config.alarms,
        dashboard=config.dashboard,
        customer_key=config.customer_key,
        shards=config.shards,
        endpoints=config.endpoints,
    )


def test_a_job_costs_by_its_slots_its_partitions_and_its_stage(run: Run, root: Path):
    prod = run("cost", "--root", str(root), "--stage", "prod", "--json").document
    whats = {line["name"]: line["what"] for line in prod["lines"]}
    assert whats["job hourly"].startswith(f"{MONTH.days * 24 * 2:,} runs")
    assert whats["job off"].startswith("0 runs")
    assert "job elsewhere" not in whats
    assert prod["total"] == pytest.approx(sum(line["usd"] for line in prod["lines"]), abs=0.01)
    dev = run("cost", "--root", str(root), "--stage", "dev", "--json").document
    assert {line["name"]: line["what"] for line in dev["lines"]}["job elsewhere"].startswith("43,200 runs")
    assert dev["prices"] == {"region": "us-east-1", "looked_up": "2026-11-29"}


def test_longer_runs_and_other_schedules_cost_more(run: Run, root: Path):
    def cost(*more: str) -> float:
        lines: list[dict[str, Any]] = run("cost", "--root", str(root), "--stage", "prod", *more, "--json").document[
            "lines"
        ]
        return next(line["usd"] for line in lines if line["name"] == "job hourly")

    short = cost()
    assert cost("--seconds", "60") > short
    file = root / "functions" / "jobs" / "jobs.toml"
    file.write_text(file.read_text().replace('"0 * * * *"', '"*/15 * * * *"'))
    assert cost() == pytest.approx(4 * short, rel=0.01)


def test_the_table_ends_with_the_total_and_says_whose_prices_they_are(run: Run, root: Path):
    said = run("cost", "--root", str(root), "--stage", "prod").out
    total = run("cost", "--root", str(root), "--stage", "prod", "--json").document["total"]
    assert said.splitlines()[-2].split() == ["total", "prod", f"{total:.2f}"]
    assert "us-east-1" in said.splitlines()[-1]
    assert " 1 dashboard, a month" in said


@pytest.mark.parametrize("stage", [(), ("--stage", "nope")])
def test_a_stage_that_must_be_named_is_told_with_those_there_are(run: Run, root: Path, stage: tuple[str, ...]):
    ran = run("cost", "--root", str(root), *stage)
    assert ran.code == 2
    assert "prod, dev" in ran.err


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ("stages = [1]", "one of stages.toml's stages: none"),
        ("[stages]\ndev = 3", "stages.dev must be a table"),
        ('[stages.dev]\nshards = "x"', "stages.dev.shards cannot be 'x'"),
        ("[stages.dev]\nshards = 99", "stages.dev.shards cannot be 99: write 1 to 16"),
        ("[stages.dev]\nshards = 0", "stages.dev.shards cannot be 0: write 1 to 16"),
        ("[stages.dev]\nendpoints = 3", "stages.dev.endpoints cannot be 3"),
        ('[stages.dev]\nalarms = "some"', "stages.dev.alarms cannot be 'some'"),
        ('[stages.dev]\ndashboard = "no"', "stages.dev.dashboard cannot be 'no'"),
    ],
)
def test_a_stage_that_cannot_be_estimated_is_told_with_its_key(run: Run, root: Path, stages: str, said: str):
    (root / "infra" / "stages.toml").write_text(stages)
    ran = run("cost", "--root", str(root), "--stage", "dev")
    assert ran.code == 2
    assert said in " ".join(ran.err.split())


def test_every_option_of_a_stage_is_read_from_its_file(run: Run, root: Path):
    (root / "infra" / "stages.toml").write_text(
        '[stages.dev]\nalarms = "none"\ndashboard = false\ncustomer_key = true\nshards = 2\nendpoints = ["default"]\n'
    )
    (root / "functions" / "jobs" / "pools.toml").write_text(
        '[pools.default]\nvpc = { id = "vpc-1", subnets = ["subnet-1"], security_groups = ["sg-1"] }\n'
    )
    lines = {line["name"]: line["usd"] for line in run("cost", "--root", str(root), "--json").document["lines"]}
    assert (lines["alarms"], lines["dashboard"], lines["keys"]) == (0, 0, 2)
    assert lines["ticks"] == pytest.approx(fixed(StageOptions(shards=2))["ticks"], abs=0.001)
    assert lines["endpoints"] == pytest.approx(7.2)
    assert len(dataclasses.fields(StageOptions)) == 5
