"""stages.toml: every mistake is told at once, with its place, before anything is synthesised."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from functions.schedules.model import Pool
from infra.config import ConfigurationError, StageConfig, load, parse

INFRA = Path(__file__).parents[2] / "infra"
POOLS = {"default": Pool()}


def complaint(stages: Any, pools: dict[str, Pool] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse({"stages": stages}, pools or POOLS)
    return str(caught.value)


def test_the_stages_that_come_with_the_project_are_valid() -> None:
    assert set(load(INFRA / "stages.toml", POOLS)) == {"dev"}


def test_an_empty_stage_keeps_its_records_and_has_every_alarm() -> None:
    (stage,) = parse({"stages": {"prod": {}}}, POOLS).values()
    assert stage == StageConfig()
    assert (stage.removal, stage.alarms, stage.drills, stage.tracing) == ("retain", "all", False, False)


def test_every_mistake_of_every_stage_is_told_at_once() -> None:
    said = complaint({"dev": {"emails": ["nobody"], "colour": 1}, "prod": {"log_days": 8, "alarms": "some"}})
    assert re.findall(r"^stages\.toml: stages\.(\S+): ", said, re.MULTILINE) == [
        "dev.emails.0",
        "dev.colour",
        "prod.alarms",
    ]
    assert "log_days" not in said, "what goes together is judged once each value is right"


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ({"log_days": 8}, "log_days: CloudWatch keeps logs for one of"),
        ({"protected": True, "removal": "destroy", "emails": ["a@b.de"]}, 'removal: .* write "retain"'),
        ({"protected": True}, "emails: a protected stage must tell somebody"),
        ({"protected": True, "https": ["https://a.de"]}, "last_resort_emails: nobody would be told"),
        (
            {"protected": True, "emails": ["a@b.de"], "last_resort_emails": []},
            "last_resort_emails: nobody would be told",
        ),
        ({"emails": ["a@b.de", "a@b.de"]}, "emails: something stands there twice"),
        ({"sms": ["+4915112345678", "+4915112345678"]}, "sms: .* twice"),
        ({"https": ["https://a.de", "https://a.de"]}, "https: .* twice"),
        ({"last_resort_emails": ["a@b.de", "a@b.de"]}, "last_resort_emails: .* twice"),
        ({"last_resort_https": ["https://a.de", "https://a.de"]}, "last_resort_https: .* twice"),
        ({"tags": {"aws:team": "x"}}, "tags.*: .* write another"),
        ({"tags": {"splitshift-stage": "x"}}, "tags.*: .* write another"),
        ({"tags": {"Cost-Centre": "x"}}, "tags.*: .* write another"),
        ({"tags": {"Team": "x", "team": "y"}}, "tags: names that differ in case only"),
        ({"tags": {f"t{n}": "x" for n in range(47)}}, "tags: .* 46 tags of yours: write fewer"),
        ({"permissions_boundary": "arn:aws:iam::1:policy/x"}, "permissions_boundary: "),
        ({"permissions_boundary": "two words"}, "permissions_boundary: "),
        ({"account": "123"}, 'account: write it like "111122223333"'),
        ({"emials": ["a@b.de"]}, "emials: is no key of a stage: write emails"),
        ({"colour": 1}, "colour: is no key of a stage: infra/README.md"),
        ({"https": ["http://example.com"]}, 'https.0: write it like "https://'),
        ({"emails": "a@b.de"}, "emails: write a list"),
        ({"region": 5}, "region: write text, in quotes"),
        ({"tags": {"a": "b*"}}, "tags.a: holds a character"),
        ({"sms": ["0151"]}, "sms.0: "),
        ({"skew_s": 0}, "skew_s: "),
        ({"ping": "http://example.com"}, "ping: "),
        ({"ping": "ssm:name"}, "ping: "),
        ({"qualifier": "Mine!"}, "qualifier: "),
        ({"drills": "yes"}, "drills: write true or false"),
        ({"shards": 0}, "shards: "),
        ({"shards": 17}, "shards: must be less than or equal to 16"),
        ({"shards": 3, "reserved_concurrency": {"scheduler": 2}}, "reserved_concurrency.scheduler: .* write 3 or more"),
        ({"drill_stack": True}, "drill_stack: .* write drills = true too"),
        ({"drill_stack": True, "drills": True, "receiver": "https://a.de"}, "drill_stack: .* leave one of them out"),
        (
            {"drill_stack": True, "drills": True, "protected": True, "emails": ["a@b.de"]},
            "drill_stack: .* the stage is protected",
        ),
        ({"reserved_concurrency": {"default": 4}}, "reserved_concurrency.default: .* write 16 or more"),
        ({"endpoints": ["other"]}, "endpoints: other is no pool"),
        ({"endpoints": ["default"]}, "endpoints: write id and route_tables into vpc of pool default"),
        ({"reserved_concurrency": {"other": 4}}, "reserved_concurrency.other: is neither a role nor a pool"),
    ],
)
def test_what_cannot_be_built_is_refused(stage: dict[str, Any], said: str) -> None:
    assert re.search(rf"^stages\.toml: stages\.prod\.{said}", complaint({"prod": stage}), re.MULTILINE)


@pytest.mark.parametrize("makers", [{"dev": ["a"], "prod": ["b"]}, {"dev": ["a", "b"]}])
def test_the_endpoints_of_one_vpc_are_made_once(makers: dict[str, list[str]]) -> None:
    vpc = {"id": "vpc-1", "subnets": ["subnet-1"], "security_groups": ["sg-1"], "route_tables": ["rtb-1"]}
    pools = {name: Pool(name=name, vpc=vpc) for name in ("a", "b")}
    parse({"stages": {"dev": {"endpoints": ["a"]}, "prod": {}}}, pools)
    said = complaint({stage: {"endpoints": names} for stage, names in makers.items()}, pools)
    assert "the endpoints of vpc-1 would be made twice: stages.dev.endpoints, pool a; " in said


@pytest.mark.parametrize("boundary", ["developers", "team/developers", "arn:aws:iam::111122223333:policy/developers"])
def test_a_boundary_is_a_policys_name_or_arn(boundary: str) -> None:
    assert parse({"stages": {"dev": {"permissions_boundary": boundary}}}, POOLS)


@pytest.mark.parametrize("name", ["Prod", "a-b", "", "x" * 17, "1st"])
def test_a_stages_name_leaves_no_doubt_whose_a_resource_is(name: str) -> None:
    assert "is no name for a stage" in complaint({name: {}})


@pytest.mark.parametrize("name", ["relay-failures", "mine-dead", "monitor", "receiver-alerts"])
def test_a_pool_cannot_take_a_name_of_the_stages_own(name: str) -> None:
    assert f"a pool cannot be called {name}" in complaint({"dev": {}}, {name: Pool(name=name)})


def test_a_pools_name_must_fit_into_a_functions() -> None:
    name = "p" * 60
    assert "more than 64 characters" in complaint({"dev": {}}, {name: Pool(name=name)})


@pytest.mark.parametrize("stages", [{}, 3, []])
def test_a_file_without_stages_is_refused(stages: Any) -> None:
    assert "there is no stage: write [stages.dev]" in complaint(stages)


def test_a_table_that_there_is_not_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"\[stage\] is no known table"):
        parse({"stage": {}, "stages": {"dev": {}}}, POOLS)


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "stages.toml"
    broken.write_text("[stages.dev")
    with pytest.raises(ConfigurationError, match=r"stages\.toml cannot be read"):
        load(broken, POOLS)


def test_the_readme_tells_every_key_and_its_example_is_valid() -> None:
    readme = (INFRA / "README.md").read_text()
    told = set(re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE))
    assert told == set(StageConfig.model_fields)
    (example,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    assert set(parse(tomllib.loads(example), POOLS)) == {"prod"}
