"""One page for who is on call: is anything wrong, do the roles run, is work piling up, what failed."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import of_function, successful_runs
from infra.naming import ROLES, Names

_HALF = 12
_WHOLE = 24


def add_dashboard(
    stack: Construct, *, names: Names, pools: tuple[str, ...], alarms: Sequence[cloudwatch.IAlarm]
) -> None:
    first = cloudwatch.TextWidget(
        width=_WHOLE,
        height=2,
        markdown=f"**Splitshift {names.stage}**: units, incidents and what to do about them are told by "
        f"`splitshift status --stage {names.stage}`.  Here is whether the machinery runs.",
    )
    rows: list[Sequence[cloudwatch.IWidget]] = [[first]]
    if alarms:
        rows.append([cloudwatch.AlarmStatusWidget(title="Alarms", width=_WHOLE, alarms=list(alarms))])
    functions = names.functions(pools)
    rows += [
        [
            _graph("Successful runs a minute (1 is well)", [successful_runs(names.of(role), role) for role in ROLES]),
            _graph("Behind their streams, milliseconds", [_behind(names.of(role)) for role in ("relay", "monitor")]),
        ],
        [
            _graph("Work that waits", [_of_queue(names.queue(pool), _VISIBLE) for pool in pools]),
            _graph("Its oldest message, seconds", [_of_queue(names.queue(pool), _OLDEST) for pool in pools]),
        ],
        [
            _graph("Errors", [of_function(name, "Errors") for name in functions]),
            _graph("Throttles", [of_function(name, "Throttles") for name in functions]),
        ],
        [
            _graph(
                "Failures that wait for a person", [_of_queue(name, _VISIBLE) for name in names.failure_queues(pools)]
            ),
            _graph("How long functions take, ms", [of_function(name, "Duration", "Maximum") for name in functions]),
        ],
    ]
    cloudwatch.Dashboard(stack, "dashboard", dashboard_name=names.of(), widgets=[list(row) for row in rows])


_VISIBLE = "ApproximateNumberOfMessagesVisible"
_OLDEST = "ApproximateAgeOfOldestMessage"


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, width=_HALF, left=list(metrics))


def _behind(function: str) -> cloudwatch.Metric:
    return of_function(function, "IteratorAge", "Maximum")


def _of_queue(queue: str, metric: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/SQS",
        metric_name=metric,
        dimensions_map={"QueueName": queue},
        statistic="Maximum",
        period=cdk.Duration.minutes(1),
    )
