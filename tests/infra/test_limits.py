"""What AWS would refuse half-way through a deployment is told before."""

from __future__ import annotations

import pytest

from functions.schedules.definitions import Definitions
from functions.schedules.model import Pool
from infra.limits import exceeded
from tests.infra.synthesis import PARTS, Synthesis
from tests.support.jobs import a_job


def definitions(*pools: Pool, permissions: int = 0) -> Definitions:
    wanted = tuple(f"s3:GetObject arn:aws:s3:::bucket-{number:04}/*" for number in range(permissions))
    job = a_job("0 2 * * *", name="a", pool="big", permissions=wanted)
    return Definitions(version="v", jobs={"a": job}, pools={pool.name: pool for pool in pools})


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (definitions(Pool(name="big", environment={"A": "é" * 1500})), "pools.big.environment: has 3001 bytes"),
        (definitions(Pool(name="big"), permissions=80), "pools.big: what its jobs ask for is too long"),
        (definitions(*(Pool(name=f"p{number}") for number in range(40))), "40 pools are too many"),
    ],
)
def test_what_is_too_much_for_a_function_or_its_role_is_told_before_it_is_deployed(
    told: Definitions, said: str
) -> None:
    (line,) = exceeded("prod", told)
    assert line.startswith(said)


def test_what_is_just_enough_is_not_told() -> None:
    pools = [Pool(name=f"p{number}") for number in range(20)]
    big = Pool(name="big", environment={"A": "é" * 1499})
    assert not list(exceeded("prod", definitions(big, *pools, permissions=50)))


def test_what_every_function_has_by_itself_is_within_what_the_limits_leave_it(synthesis: Synthesis) -> None:
    """1,096 bytes of variables: values that CloudFormation fills in are at most as long as where they are written."""
    for part in PARTS:
        template = synthesis.template("prod", part)
        for function in template.properties("AWS::Lambda::Function"):
            variables = function["Environment"]["Variables"]
            own = {name: value for name, value in variables.items() if name != "SPLITSHIFT_QUEUES"}
            assert sum(len(name) + len(template.text(value)) for name, value in own.items()) < 1096
