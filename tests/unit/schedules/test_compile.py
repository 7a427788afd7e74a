from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from functions.schedules.compile import compile_folder, write_definitions
from functions.schedules.definitions import load, parse
from functions.schedules.model import Catchup, Job, Pool
from tests.support.project import Project, a_project

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """\
[jobs.small]
schedule = "*/15 * * * *"
run = "work:main"
owner = "ops"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return a_project(tmp_path)


def test_a_job_of_three_lines_gets_the_safe_defaults(project: Project) -> None:
    project.write(SMALL)
    compiled = project.compile()
    assert compiled.errors == ()
    definitions = parse(compiled.document)
    assert definitions.bad == ()
    assert definitions.pools == {"default": Pool()}
    assert definitions.jobs["small"] == Job(
        name="small",
        schedules=("*/15 * * * *",),
        timezone="UTC",
        run="work:main",
        owner="ops",
        pool="default",
        attempts=3,
        backoff_s=30,
        backoff_max_s=600,
        max_duration_s=600,
        start_grace_s=300,
        grace_s=300,
        complete_within_s=300 + 3 * (600 + 600) + 300,
        start_deadline_s=None,
        lease_s=60,
        drill=False,
        overlap="queue",
        lock="",
        catchup=Catchup(policy="latest", window_s=604_800, max=100, order="oldest"),
        severity="ticket",
        enabled=True,
    )


@pytest.mark.parametrize("line", ['start_grace = "366d"', 'grace = "366d"', 'start_grace = "366d"\ngrace = "366d"'])
def test_the_longest_graces_make_a_promise_that_the_stored_definition_may_have(project: Project, line: str) -> None:
    project.write(SMALL + line)
    compiled = project.compile()
    definitions = parse(compiled.document)
    assert (compiled.errors, definitions.bad) == ((), ())
    assert definitions.jobs["small"].complete_within_s == 366 * 86_400


def test_every_field_reaches_the_definitions_as_it_was_written(project: Project) -> None:
    project.write(
        """
        [defaults]
        owner = "payments"
        timezone = "Europe/Berlin"
        runbook = "https://wiki.example.com/{job}"
        retries = { attempts = 5, backoff = "1m" }

        [jobs.full]
        schedule = ["0 2 * * *", "rate(6 hours)"]
        run = "work:main"
        payload = { tenant = 7, list = ["a", 1.5, true] }
        partitions = ["eu", "us"]
        pool = "heavy"
        permissions = ["s3:GetObject arn:aws:s3:::invoices/*"]
        retries = { backoff_max = "30m" }
        max_duration = "4m"
        start_grace = "2m"
        grace = "3m"
        complete_within = "4h"
        start_deadline = "1h"
        lease = "15s"
        drill = true
        lock = "ledger-{partition}"
        catchup = { window = "1d", max = 5 }
        severity = "page"
        description = "Sends them."
        tags = ["money"]
        stages = ["prod"]
        starts = 2026-12-01T00:00:00+01:00
        ends = 2027-12-01T00:00:00Z
        enabled = false
        dst_gap = "skip"
        dst_fold = "both"
        spread = "45m"
        needs_review = true
        review = { within = "20h" }
        alert = { failures = 1, of = 1 }
        """
    )
    project.write(
        """
        [pools.heavy]
        timeout = "5m"
        memory = 1024
        batch = 2
        max_concurrency = 4
        environment = { MODE = "slow" }
        secrets = { KEY = "ssm:/billing/key" }
        vpc = { id = "vpc-1", subnets = ["subnet-1"], security_groups = ["sg-1"], route_tables = ["rtb-1"] }
        dependencies = "worker-heavy"
        """,
        "pools.toml",
    )
    compiled = project.compile()
    assert compiled.errors == ()
    definitions = parse(compiled.document)
    assert definitions.bad == ()
    job = definitions.jobs["full"]
    assert (job.schedules, job.timezone, job.owner) == (("0 2 * * *", "rate(6 hours)"), "Europe/Berlin", "payments")
    assert (job.attempts, job.backoff_s, job.backoff_max_s) == (5, 60, 1800)
    assert (job.dst_gap, job.dst_fold, job.spread_s) == ("skip", "both", 2700)
    assert (job.max_duration_s, job.start_grace_s, job.grace_s, job.complete_within_s) == (240, 120, 180, 14_400)
    assert (job.needs_review, job.review_within_s) == (True, 72_000)
    assert (job.start_deadline_s, job.lease_s, job.drill, job.enabled) == (3600, 15, True, False)
    assert (job.payload, job.partitions) == ({"tenant": 7, "list": ["a", 1.5, True]}, ("eu", "us"))
    assert (job.pool, job.permissions) == ("heavy", ("s3:GetObject arn:aws:s3:::invoices/*",))
    assert (job.lock, job.catchup) == ("ledger-{partition}", Catchup(window_s=86_400, max=5))
    assert (job.severity, job.description, job.tags, job.stages) == ("page", "Sends them.", ("money",), ("prod",))
    assert job.runbook == "https://wiki.example.com/full"
    assert [str(job.starts), str(job.ends)] == ["2026-11-30 23:00:00+00:00", "2027-12-01 00:00:00+00:00"]
    assert definitions.pools["heavy"] == Pool(
        name="heavy",
        timeout_s=300,
        memory=1024,
        batch=2,
        max_concurrency=4,
        environment={"MODE": "slow"},
        secrets={"KEY": "ssm:/billing/key"},
        vpc={"id": "vpc-1", "subnets": ["subnet-1"], "security_groups": ["sg-1"], "route_tables": ["rtb-1"]},
        dependencies="worker-heavy",
    )


def test_one_wrong_field_hides_no_other_and_each_is_told_at_its_line(project: Project) -> None:
    project.write(
        """\
        [defaults]
        timezone = "europe/berlin"

        [jobs.one]
        schedule = [
          "0 2 * * *",
          "0 5 9 * * *",
        ]
        run = "worked:main"
        shedule = "x"
        owner = 5
        retries.attempts = 99
        retries.backof = "5m"
        catchup = { max = 0, window = "1.5h" }
        drill = "yes"
        starts = 2026-01-01T00:00:00
        payload = { at = 2026-01-01 }

        [jobs.Two]
        schedule = "0 3 * * *"
        """
    )
    assert project.complaints() == [
        (2, None, "defaults.timezone"),
        (5, "one", "schedule"),
        (9, "one", "run"),
        (10, "one", "shedule"),
        (11, "one", "owner"),
        (12, "one", "retries.attempts"),
        (13, "one", "retries.backof"),
        (14, "one", "catchup.window"),
        (14, "one", "catchup.max"),
        (15, "one", "drill"),
        (16, "one", "starts"),
        (17, "one", "payload"),
        (19, "Two", "name"),
        (19, "Two", "run"),
        (19, "Two", "owner"),
    ]
    by_field = {error.field: error.fix for error in project.compile().errors}
    assert by_field["defaults.timezone"] == 'write "Europe/Berlin"'
    assert by_field["run"] == 'write run = "module:function"'
    assert by_field["shedule"] == "write schedule"
    assert by_field["retries.backof"] == "write backoff"
    assert by_field["catchup.window"] == 'write "1h30m"'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('tags = ["a", 5, "b c"]', ["must be text, not 5", '"b c" is not a tag']),
        ('tags = ["a", "b", "a", "b"]', ['holds "a" twice', 'holds "b" twice']),
        ('partitions = ["e u", 3]', ['"e u" is not a partition', "must be text, not 3"]),
        ('permissions = ["s3:*", "*"]', ['"s3:*" is not a permission', '"*" is not a permission']),
    ],
)
def test_one_wrong_value_of_a_list_hides_no_other(project: Project, line: str, said: list[str]) -> None:
    project.write(SMALL + line)
    assert [error.message for error in project.compile().errors] == said


def test_one_wrong_schedule_hides_no_other(project: Project) -> None:
    project.write(SMALL.replace('"*/15 * * * *"', '["1 * * *", "0 2 * * *", "61 * * * *"]'))
    assert [error.message for error in project.compile().errors] == [
        '"1 * * *" is not five fields',
        "minute 61 is out of range",
    ]


def test_one_wrong_variable_or_secret_hides_no_other(project: Project) -> None:
    project.write(SMALL)
    project.write("[pools.p]\nenvironment = { A-B = 'x', C = 1 }\nsecrets = { D = 'plain', E = 'too' }\n", "pools.toml")
    assert [error.message for error in project.compile().errors] == [
        '"A-B" is no name for a variable of yours',
        "must be text, not 1",
        '"plain" does not name a secret',
        '"too" does not name a secret',
    ]


@pytest.mark.parametrize("policy", ["none", "latest", "all"])
@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_every_catch_up_policy_is_compiled_and_read_back(project: Project, policy: str, order: str) -> None:
    project.write(SMALL + f'catchup = {{ policy = "{policy}", order = "{order}" }}')
    compiled = project.compile()
    assert compiled.errors == ()
    [job] = parse(compiled.document).jobs.values()
    assert (job.catchup.policy, job.catchup.order) == (policy, order)


@pytest.mark.parametrize(
    "line",
    [
        'invoke = "a-function"',
        "watch = true",
        "budget = { usd = 5 }",
        "budget_daily = { usd = 5 }",
        "expect = { rows = 1 }",
        'review = { by = ["ann"] }',
        "alert = { failures = 2 }",
        "alert = { of = 2 }",
    ],
)
def test_what_is_not_built_yet_is_refused_and_says_so(project: Project, line: str) -> None:
    project.write(SMALL + line)
    [error] = project.compile().errors
    assert "not yet supported" in error.message
    assert error.line == 5


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('max_duration = "15m"', "max_duration"),
        ("max_duration = 300", "max_duration"),
        ('complete_within = "10m"', "complete_within"),
        ('retries = { backoff = "20m" }', "retries.backoff_max"),
        ("starts = 2026-01-02T00:00:00Z\nends = 2026-01-01T00:00:00Z", "ends"),
        ("starts = 2026-01-02", "starts"),
        ('starts = "2026-01-02T00:00:00Z"', "starts"),
        ("starts = 2026-01-02T00:00:00.5Z", "starts"),
        ("starts = 9999-12-31T23:59:59-05:00", "starts"),
        ("ends = 0001-01-01T00:00:00+05:00", "ends"),
        ("ends = 1971-01-01T00:00:00+14:00", "ends"),
        ("starts = 2199-12-31T23:59:59-12:00", "starts"),
        ('lock = "ledger-{partition}"', "lock"),
        ('lock = "ledger"\noverlap = "allow"', "lock"),
        ('lease = "14s"', "lease"),
        ('lease = "16m"', "lease"),
        ('start_grace = "59s"', "start_grace"),
        ('grace = "59s"', "grace"),
        ('pool = "heavy"', "pool"),
        ('permissions = ["*"]', "permissions"),
        ('permissions = ["s3:* arn:aws:s3:::a"]', "permissions"),
        ('permissions = ["s3:GetObject *"]', "permissions"),
        ('permissions = ["s3:GetObject arn:aws:s3:::*"]', "permissions"),
        ('permissions = ["iam:PassRole arn:aws:iam::1:role/x"]', "permissions"),
        ('permissions = ["sts:AssumeRole arn:aws:iam::1:role/x"]', "permissions"),
        ('permissions = ["dynamodb:PutItem arn:aws:dynamodb:eu-west-1:1:table/Splitshift-leases"]', "permissions"),
        ('runbook = "http://wiki"', "runbook"),
        ('stages = "prod"', "stages"),
        ("tags = [1]", "tags"),
        ('severity = "urgent"', "severity"),
        ("retries = 3", "retries"),
        ("enabled = 1", "enabled"),
        ("retries.attempts = true", "retries.attempts"),
        ("retries.attempts = 2.0", "retries.attempts"),
        ("payload = { a = nan }", "payload"),
        ('payload = { a = "\\u0000" }', "payload"),
        ('description = "two\\nlines"', "description"),
        ("catchup.max = 10001", "catchup.max"),
        ('seconds = "60"', "seconds"),
        ("seconds = 30", "seconds"),
        ("seconds = [0, 30]", "seconds"),
        ('dst_gap = "shift"', "dst_gap"),
        ('dst_fold = "twice"', "dst_fold"),
        ('spread = "15m"', "spread"),
        ('spread = "367d"', "spread"),
        ("spread = 60", "spread"),
    ],
)
def test_a_value_that_cannot_work_is_one_error_at_its_field(project: Project, line: str, field: str) -> None:
    """H10"""
    project.write(SMALL + line)
    compiled = project.compile()
    assert [error.field for error in compiled.errors] == [field]
    assert compiled.errors[0].fix
    assert compiled.document["jobs"] == {}


@pytest.mark.parametrize(("line", "key"), [('catchup = "latest"', "policy"), ("retries = 3", "attempts")])
def test_a_value_where_a_table_belongs_is_told_the_tables_keys(project: Project, line: str, key: str) -> None:
    project.write(SMALL + line)
    [error] = project.compile().errors
    assert error.fix.startswith("write { key = value }, with ")
    assert key in error.fix


def test_seconds_go_with_cron_fields(project: Project) -> None:
    project.write(SMALL + 'seconds = "0,30"')
    [job] = parse(project.compile().document).jobs.values()
    assert job.seconds == (0, 30)


@pytest.mark.parametrize("schedule", ['"rate(5 minutes)"', '["0 2 * * *", "at(2026-12-01T02:30:00)"]'])
def test_seconds_beside_what_says_its_own_are_refused(project: Project, schedule: str) -> None:
    lines = [line for line in SMALL.splitlines() if "schedule" not in line]
    project.write("\n".join([*lines, f"schedule = {schedule}", 'seconds = "0,30"']))
    [error] = project.compile().errors
    assert (error.field, "cron" in error.fix) == ("seconds", True)


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("def mein(run): ...", 'write "work:mein"'),
        ("async def main(run): ...", "asyncio.run"),
        ("def main(): ...", "def main(run)"),
        ("def main(run, more): ...", "def main(run)"),
        ("def main(run, *, more): ...", "def main(run)"),
        ("class A:\n    def main(self): ...", "at the top level"),
        ("def main(run:\n", "correct it"),
        ("\x00", "correct it"),
    ],
)
def test_a_run_must_be_a_function_that_takes_the_run(project: Project, module: str, says: str) -> None:
    project.write(module, "work.py")
    project.write(SMALL)
    [error] = project.compile().errors
    assert (error.field, error.line) == ("run", 3)
    assert says in error.fix
    assert "None" not in error.message


def test_a_job_is_found_without_being_imported(project: Project) -> None:
    """H04"""
    project.write(
        "raise SystemExit('imported')\ndef main(run, item='\\d', *rest, more=1): ...", "deep/work/__init__.py"
    )
    project.write(SMALL.replace("work:main", "deep.work:main"))
    assert project.compile().errors == ()


def test_a_name_is_one_jobs_over_all_files_and_each_place_is_told_of_the_other(project: Project) -> None:
    project.write(SMALL)
    project.write("\n" + SMALL, "billing/jobs.toml")
    compiled = project.compile()
    told = [(error.file, error.line, error.message) for error in compiled.errors]
    assert told == [
        ("functions/jobs/billing/jobs.toml", 2, "is also defined in functions/jobs/jobs.toml:1"),
        ("functions/jobs/jobs.toml", 1, "is also defined in functions/jobs/billing/jobs.toml:2"),
    ]
    assert compiled.document["jobs"] == {}


@pytest.mark.parametrize(
    ("text", "line", "job"),
    [
        ("[jobs.a]\nschedule = \n", 2, None),
        ("[jobs.a]\nowner = 'x'\n\n[jobs.a]\n", 4, "a"),
        ("[jobs.a]\nowner = 'x'\nowner = 'y'\n", 3, "a"),
        ("[jobs.a]\nx = [1,\n", 2, None),
        ("[jobs.a]\nx = " + "[" * 5000, 1, None),
        ("\ufeff[jobs.a]\n", 1, None),
    ],
)
def test_where_toml_stops_the_line_is_told_and_the_other_files_go_on(
    project: Project, text: str, line: int, job: str | None
) -> None:
    project.write(text, "broken/jobs.toml")
    project.write(SMALL)
    compiled = project.compile()
    assert [(error.file, error.line, error.job) for error in compiled.errors] == [
        ("functions/jobs/broken/jobs.toml", line, job)
    ]
    assert set(compiled.document["jobs"]) == {"small"}


def test_a_file_that_is_not_utf_8_is_told_at_its_line(project: Project) -> None:
    project.write(SMALL).write_bytes(SMALL.encode() + b"# caf\xe9\n")
    [error] = project.compile().errors
    assert (error.line, error.message) == (5, "is not UTF-8 text")


def test_windows_line_ends_keep_lines_and_values_as_they_are(project: Project) -> None:
    path = project.write(SMALL)
    path.write_bytes(SMALL.replace("\n", "\r\n").encode() + b"drill = 5\r\n")
    assert project.complaints() == [(5, "small", "drill")]


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("[job.small]\nowner = 'x'", 1, "job"),
        ("jobs = []", 1, "jobs"),
        ("[jobs]\nsmall = 5", 2, None),
        ("defaults = 5", 1, "defaults"),
    ],
)
def test_a_table_in_the_wrong_place_is_told(project: Project, text: str, line: int, field: str | None) -> None:
    project.write(text)
    assert [(error.line, error.field) for error in project.compile().errors] == [(line, field)]


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('timeout = "29s"', "timeout"),
        ('timeout = "16m"', "timeout"),
        ("memory = 64", "memory"),
        ("batch = 11", "batch"),
        ("max_concurrency = 1", "max_concurrency"),
        ('environment = { AWS_REGION = "x" }', "environment"),
        ('environment = { "A-B" = "x" }', "environment"),
        ("environment = { A = 1 }", "environment"),
        ('secrets = { A = "plain text" }', "secrets"),
        ('secrets = { A = "ssm:/a" }\nenvironment = { A = "a" }', "secrets.A"),
        ("vpc = { ids = [] }", "vpc"),
        ('vpc = { subnets = ["subnet-1"] }', "vpc"),
        ('vpc = { subnets = [], security_groups = ["sg-1"] }', "vpc"),
        ('vpc = { subnets = ["sg-1"], security_groups = ["sg-1"] }', "vpc"),
        ('vpc = { id = 1, subnets = ["subnet-1"], security_groups = ["sg-1"] }', "vpc"),
        ('vpc = { id = "vpc-1", subnets = ["subnet-1"], security_groups = ["sg-1"], route_tables = [] }', "vpc"),
        ("size = 1", "size"),
    ],
)
def test_a_wrong_pool_is_told_once_and_its_jobs_are_not_blamed(project: Project, line: str, field: str) -> None:
    project.write(SMALL + 'pool = "heavy"\nmax_duration = "14m"')
    project.write(f"[pools.heavy]\n{line}\n", "pools.toml")
    [error] = project.compile().errors
    assert (error.file, error.line, error.field) == ("functions/jobs/pools.toml", 2, f"pools.heavy.{field}")


def test_a_pools_file_that_cannot_be_read_blames_no_job(project: Project) -> None:
    project.write(SMALL + 'pool = "heavy"')
    project.write("[pools.heavy\n", "pools.toml")
    [error] = project.compile().errors
    assert (error.file, error.line) == ("functions/jobs/pools.toml", 1)


def test_a_default_that_conflicts_with_a_job_is_told_where_it_stands(project: Project) -> None:
    project.write('[defaults]\nmax_duration = "14m30s"\n' + SMALL)
    assert project.complaints() == [(2, "small", "max_duration")]


def test_a_rule_is_not_judged_by_a_value_that_is_wrong_already(project: Project) -> None:
    project.write(SMALL + 'max_duration = "5 m"\ncomplete_within = "5m"\n')
    assert project.complaints() == [(5, "small", "max_duration")]


def test_the_same_files_give_the_same_bytes_and_a_change_another_version(project: Project, tmp_path: Path) -> None:
    project.write(SMALL + SMALL.replace("small", "aaa"))
    first = project.compile()
    write_definitions(first.document, tmp_path / "out" / "definitions.json")
    once = (tmp_path / "out" / "definitions.json").read_bytes()
    project.write(SMALL.replace("small", "aaa") + SMALL)
    write_definitions(project.compile().document, tmp_path / "out" / "definitions.json")
    assert (tmp_path / "out" / "definitions.json").read_bytes() == once
    assert os.listdir(tmp_path / "out") == ["definitions.json"]  # noqa: PTH208
    assert load(tmp_path / "out" / "definitions.json").version == first.document["version"]
    project.write(SMALL.replace("*/15", "*/10") + SMALL.replace("small", "aaa"))
    assert project.compile().document["version"] != first.document["version"]


def test_a_folder_elsewhere_compiles_against_the_code_that_is_named(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "jobs.toml").write_text(SMALL, encoding="utf-8")
    assert compile_folder(elsewhere, root=tmp_path, code=project.folder).errors == ()
    assert [error.field for error in compile_folder(elsewhere, root=tmp_path).errors] == ["run"]


def test_a_compiled_document_is_plain_json(project: Project) -> None:
    project.write(SMALL + "starts = 2026-01-02T00:00:00Z")
    document = project.compile().document
    assert json.loads(json.dumps(document)) == document


def test_functions_load_definitions_without_anything_heavy() -> None:
    program = (
        "import sys, functions.schedules.definitions, functions.schedules.slots;"
        "sys.exit(any(name in sys.modules for name in ('pydantic', 'click', 'rich', 'boto3')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
