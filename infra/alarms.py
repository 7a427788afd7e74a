"""What CloudWatch watches.  It looks at the services around us and at whether we run at all; units are the monitor's.

Two dead-man's switches need no code of ours.  The scheduler's silence wakes the monitor, which tells people once; the
monitor's own goes to the last-resort topic.  Neither does both.  No data means dead there, and healthy elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns

from functions.records.tables import BY_DUE, COMPLETIONS, EFFECTS, INVENTORY, LEASES
from infra.naming import Names
from infra.tables import Tables

_MINUTE = cdk.Duration.minutes(1)
LATE_STREAM_MS = 120_000
"""A record that has waited so long is late for a unit that is due now."""
LATE_JOURNAL_MS = 600_000
"""Its records wait a minute for each other: see the mapping's window."""


class Alarms:
    """`made` are those of this stack, for the dashboard."""

    def __init__(
        self, stack: cdk.Stack, *, names: Names, pools: tuple[str, ...], tables: Tables, topic: sns.Topic
    ) -> None:
        self._stack = stack
        self._names = names
        self._pools = pools
        self._tables = tables
        self._topic = topic
        self.made: list[cloudwatch.Alarm] = []

    def add(self, which: Literal["all", "switches", "none"], monitor: lambda_.Function) -> None:
        if which == "none":
            return
        self._silent("scheduler").add_alarm_action(actions.LambdaAction(monitor))
        self._told(self._silent("monitor"))
        if which == "all":
            self._functions()
            self._queues()
            self._streams()
            self._throttled_tables()

    def _silent(self, role: str) -> cloudwatch.Alarm:
        runs = successful_runs(self._names.of(role))
        return self._alarm(
            f"{role}-silent",
            f"The {role} has had no successful run for three of four minutes.",
            runs,
            below=1,
            of=(3, 4),
            missing=cloudwatch.TreatMissingData.BREACHING,
        )

    def _functions(self) -> None:
        """Single errors are tried again; what lasts is told."""
        for name in self._names.functions(self._pools):
            for metric, what in (("Errors", "fails"), ("Throttles", "is throttled")):
                told = f"{name} {what} in three of five minutes."
                short = name.removeprefix(self._names.of("")) + f"-{metric.lower()}"
                self._told(self._alarm(short, told, of_function(name, metric), at_least=1, of=(3, 5)))

    def _queues(self) -> None:
        """By what lies there: counts of messages sent stay at zero for what SQS itself moves there."""
        for name in self._names.failure_queues(self._pools):
            visible = cloudwatch.Metric(
                namespace="AWS/SQS",
                metric_name="ApproximateNumberOfMessagesVisible",
                dimensions_map={"QueueName": name},
                statistic="Maximum",
                period=_MINUTE,
            )
            short = name.removeprefix(self._names.of("")) + "-messages"
            told = f"{name} holds what failed: look at it, then remove it or send it back."
            self._told(self._alarm(short, told, visible, at_least=1, of=(1, 1)))

    def _streams(self) -> None:
        self._behind("relay", "the inventory's stream: units start late", LATE_STREAM_MS)
        self._behind("monitor", "the journal's stream: changes to it are told late, or never", LATE_JOURNAL_MS)

    def _behind(self, role: str, what: str, late_ms: int) -> None:
        """Each of them reads one stream."""
        age = of_function(self._names.of(role), "IteratorAge", "Maximum")
        told = f"The {role} is behind {what}."
        self._told(self._alarm(f"{role}-behind", told, age, at_least=late_ms, of=(3, 5)))

    def _throttled_tables(self) -> None:
        """The four tables on every unit's way, and the index by which due ones are found.

        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html: a table's metrics are
        without its indexes', which name both.
        """
        tables = {
            table.name: {"TableName": self._tables.name(table)} for table in (INVENTORY, LEASES, COMPLETIONS, EFFECTS)
        }
        told = "DynamoDB throttles the records: writes are tried again, and units take longer."
        self._throttled("tables-throttled", told, tables)
        index = {BY_DUE.name: tables[INVENTORY.name] | {"GlobalSecondaryIndexName": BY_DUE.name}}
        told = "DynamoDB throttles the index of due units: rows are written later, and the sweep finds less."
        self._throttled("index-throttled", told, index)

    def _throttled(self, name: str, told: str, watched: Mapping[str, Mapping[str, str]]) -> None:
        """They have no data where nothing is throttled, hence FILL."""
        metrics: dict[str, cloudwatch.IMetric] = {
            f"{what}_{way}": cloudwatch.Metric(
                namespace="AWS/DynamoDB",
                metric_name=f"{way.title()}ThrottleEvents",
                dimensions_map=dict(dimensions),
                statistic="Sum",
                period=_MINUTE,
            )
            for what, dimensions in watched.items()
            for way in ("read", "write")
        }
        total = _math(" + ".join(f"FILL({one},0)" for one in metrics), metrics, "throttled requests")
        self._told(self._alarm(name, told, total, at_least=1, of=(3, 5)))

    def _told(self, alarm: cloudwatch.Alarm) -> None:
        alarm.add_alarm_action(actions.SnsAction(self._topic))
        alarm.add_ok_action(actions.SnsAction(self._topic))

    def _alarm(
        self,
        name: str,
        description: str,
        metric: cloudwatch.IMetric,
        *,
        of: tuple[int, int],
        below: int | None = None,
        at_least: int = 0,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> cloudwatch.Alarm:
        comparison = cloudwatch.ComparisonOperator
        alarm = cloudwatch.Alarm(
            self._stack,
            name,
            alarm_name=self._names.of(name),
            alarm_description=description,
            metric=metric,
            threshold=at_least if below is None else below,
            comparison_operator=comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            if below is None
            else comparison.LESS_THAN_THRESHOLD,
            datapoints_to_alarm=of[0],
            evaluation_periods=of[1],
            treat_missing_data=missing,
        )
        self.made.append(alarm)
        return alarm


def successful_runs(function: str, role: str = "") -> cloudwatch.MathExpression:
    """Per minute.  A function that fails each time is as dead as one that is never invoked.

    With a role, for a graph of several: there no two metrics may share an id.
    """
    invocations, errors = f"{role}invocations", f"{role}errors"
    metrics: dict[str, cloudwatch.IMetric] = {
        invocations: of_function(function, "Invocations"),
        errors: of_function(function, "Errors"),
    }
    return _math(f"FILL({invocations},0) - FILL({errors},0)", metrics, role or "successful runs")


def of_function(function: str, metric: str, statistic: str = "Sum") -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/Lambda",
        metric_name=metric,
        dimensions_map={"FunctionName": function},
        statistic=statistic,
        period=_MINUTE,
    )


def _math(expression: str, metrics: Mapping[str, cloudwatch.IMetric], label: str) -> cloudwatch.MathExpression:
    return cloudwatch.MathExpression(expression=expression, using_metrics=dict(metrics), label=label, period=_MINUTE)
