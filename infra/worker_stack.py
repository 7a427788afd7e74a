"""The workers' side: the relay, and per pool a queue, its dead-letter queue and a function."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from functions.kit.parameters import folder
from functions.relay.settings import RelaySettings
from infra.drill_stack import URL_PARAMETER
from infra.endpoints import Endpoints
from infra.limits import permissions
from infra.naming import RELAY_FAILURES
from infra.pool import RECEIVER, PoolWorker
from infra.queues import failure_queue
from infra.relay import Relay
from infra.settings import environment
from infra.stage import Stage, StageStack
from infra.tables import Tables


class WorkerStack(StageStack):
    def __init__(self, scope: Construct, stage: Stage) -> None:
        super().__init__(scope, "worker", stage)
        tables = Tables(self, stage.name)
        receiver = self._receiver()
        pools = {
            pool.name: PoolWorker(
                self,
                f"pool-{pool.name}",
                pool=pool,
                permissions=permissions(stage.own, pool.name),
                stage=stage.name,
                config=stage.config,
                receiver=receiver,
                asset=stage.assets.build("worker", pool.dependencies),
                tables=tables,
            )
            for pool in sorted(stage.definitions.pools.values(), key=lambda pool: pool.name)
        }
        for name, worker in pools.items():
            cdk.Tags.of(worker).add("splitshift-pool", name)
        self._endpoints(pools)
        failures = failure_queue(self, "relay-failures", stage.names.of(RELAY_FAILURES))
        queues = {name: worker.queue for name, worker in pools.items()}
        self._tell_queues(queues, failures)
        if receiver:
            self.tell({RECEIVER: receiver})
        Relay(
            self,
            "relay",
            queues=queues,
            failures=failures,
            stage=stage.name,
            config=stage.config,
            asset=stage.assets.build("relay"),
            tables=tables,
        )

    def _receiver(self) -> str | None:
        if not self.stage.config.drill_stack:
            return self.stage.config.receiver
        return ssm.StringParameter.value_for_string_parameter(self, f"{folder(self.stage.name)}/{URL_PARAMETER}")

    def _endpoints(self, workers: Mapping[str, PoolWorker]) -> None:
        known = self.stage.definitions.pools
        for name in self.stage.config.endpoints:
            made = Endpoints(
                self, f"endpoints-{name}", pool=known[name], pools=list(known.values()), names=self.stage.names
            )
            for member in made.members:
                workers[member].node.add_dependency(made)

    def _tell_queues(self, queues: Mapping[str, sqs.Queue], failures: sqs.Queue) -> None:
        urls = self.to_json_string({name: queue.queue_url for name, queue in queues.items()})
        self.tell(environment(RelaySettings, (), queues=urls, failure_queue=failures.queue_url))
