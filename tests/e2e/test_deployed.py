"""What a deployed stage must survive: killed workers, deployments under load, the monitor gone for a while."""

from __future__ import annotations

import pytest

from tests.e2e.kills import kill_workers
from tests.support.deployed import Up

pytestmark = [pytest.mark.slow, pytest.mark.cdk, pytest.mark.ministack, pytest.mark.timeout(900)]


def test_e02_workers_killed_at_random_lose_and_double_nothing_and_every_dead_attempt_is_in_the_journal(up: Up) -> None:
    """A fifth of the units fail their first attempt, too, and are seen again."""
    with up.stage() as stage:
        killed = kill_workers(up, stage, units=24, kills=5, seed=1)
    account = killed.account
    assert account.ok, account
    assert killed.kills == 5
    assert (account.effects, account.completions) == (48, 24)
    assert account.died > 0, "nobody was killed at work, so nothing is shown"
    assert 0 < account.failed <= 4, "whose message came back"
    assert account.attempts == 24 + account.died + account.failed
