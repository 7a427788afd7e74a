"""What would be refused only when it is deployed: AWS's limits on what all pools and their jobs come to together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from functions.schedules.definitions import Definitions
from infra.naming import Names

# Lambda gives a function 4 KB of variables, SSM a parameter as much; a worker's own take 1 KB at most, the relay's too.
_VARIABLES = 3000
# A role's inline policies have 10,240 characters together; what every worker needs takes less than 4,000.
_POLICY = 6000
_STATEMENT = len('{"Action":"","Effect":"Allow","Resource":""},')
_QUEUE = len('"":"https://sqs.ap-northeast-1.amazonaws.com/111122223333/",')


def permissions(definitions: Definitions, pool: str) -> Sequence[str]:
    """What the jobs of a pool ask for: they share its function, and so its role."""
    return sorted({one for job in definitions.jobs.values() if job.pool == pool for one in job.permissions})


def exceeded(stage: str, definitions: Definitions) -> Iterator[str]:
    """A line per limit.  `definitions` are the stage's own."""
    names = Names(stage=stage)
    for pool in definitions.pools.values():
        variables = sum(len(f"{name}{value}".encode()) for name, value in pool.environment.items())
        if variables > _VARIABLES:
            yield f"pools.{pool.name}.environment: has {variables} bytes: Lambda leaves it {_VARIABLES}: shorten it"
        policy = sum(len(one) + _STATEMENT for one in permissions(definitions, pool.name))
        if policy > _POLICY:
            fix = "ask for less, or move some of them into another pool"
            yield f"pools.{pool.name}: what its jobs ask for is too long for one role's policy in stage {stage}: {fix}"
    if sum(len(name + names.queue(name)) + _QUEUE for name in definitions.pools) > _VARIABLES:
        yield f"{len(definitions.pools)} pools are too many for one function's variables in stage {stage}: use fewer"
