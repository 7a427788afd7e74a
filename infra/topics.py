"""Three topics, by who is told: `people` read text, programs read `events`, and `last-resort` speaks when the monitor
cannot: CloudWatch's alarms alone publish there, to subscriptions without a filter, since they carry no attributes of
ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.config import StageConfig
from infra.naming import Names

_CLOUDWATCH = "cloudwatch.amazonaws.com"


class Topics(Construct):
    def __init__(self, scope: Construct, name: str, *, names: Names, config: StageConfig) -> None:
        super().__init__(scope, name)
        self._key = self._customer_key() if config.customer_key else None
        self.people = self._topic("people", names)
        self.events = self._topic("events", names)
        self.last_resort = self._topic("last-resort", names)
        for email in config.emails:
            self.people.add_subscription(subscriptions.EmailSubscription(email))
        for number in config.sms:
            self.people.add_subscription(subscriptions.SmsSubscription(number))
        for url in config.https:
            self.events.add_subscription(subscriptions.UrlSubscription(url))
        for email in config.last_resort:
            self.last_resort.add_subscription(subscriptions.EmailSubscription(email))
        for url in config.last_resort_https:
            self.last_resort.add_subscription(subscriptions.UrlSubscription(url))

    def allow_publishing(self) -> Iterator[iam.PolicyStatement]:
        """For the monitor."""
        yield iam.PolicyStatement(actions=["sns:Publish"], resources=[self.people.topic_arn, self.events.topic_arn])
        if self._key is not None:
            yield iam.PolicyStatement(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[self._key.key_arn])

    def _topic(self, audience: str, names: Names) -> sns.Topic:
        topic = sns.Topic(self, audience, topic_name=names.of(audience), master_key=self._key, enforce_ssl=True)
        # A policy of its own replaces SNS's, which lets the whole account publish: CDK's alarm action adds nothing.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsOfThisAccount",
                principals=[iam.ServicePrincipal(_CLOUDWATCH)],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions=self._of_this_account(),
            )
        )
        return topic

    def _customer_key(self) -> kms.Key:
        """Not stateful: a topic keeps nothing.  CloudWatch must be able to use it, or its messages are refused."""
        key = kms.Key(self, "key", enable_key_rotation=True, removal_policy=cdk.RemovalPolicy.DESTROY)
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsOfThisAccount",
                principals=[iam.ServicePrincipal(_CLOUDWATCH)],
                actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                resources=["*"],  # in a key's policy: this key
                conditions=self._of_this_account(),
            )
        )
        return key

    def _of_this_account(self) -> dict[str, dict[str, str]]:
        return {"StringEquals": {"aws:SourceAccount": cdk.Stack.of(self).account}}
