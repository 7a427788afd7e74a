"""Queues: what a failure leaves behind is kept for as long as SQS can, counted from when it was first sent."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.nag import acknowledge

FAILURES_KEPT = cdk.Duration.days(14)
LONGEST_FUNCTION_S = 900
VISIBILITY_FACTOR = 6
"""Of a function's time-out, as AWS advises for event source mappings: room for deliveries that were throttled."""
RECEIVES_AT_MOST = 1000
"""Attempts are counted in the journal.  Waiting for a lock receives a message over and over: that is no failure."""


def visibility_s(timeout_s: int, window_s: int = 0) -> int:
    """How long a queue hides a message from others: longer than any function that works it may last."""
    if timeout_s > LONGEST_FUNCTION_S:
        raise ValueError("Lambda gives a function 900 seconds at most")
    return VISIBILITY_FACTOR * timeout_s + window_s


def failure_queue(scope: Construct, name: str, physical: str) -> sqs.Queue:
    """Where what failed for good waits for a person."""
    queue = sqs.Queue(
        scope,
        name,
        queue_name=physical,
        retention_period=FAILURES_KEPT,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
    )
    acknowledge(queue, "AwsSolutions-SQS3", "it is where failures end: nobody receives from it but a person")
    return queue
