"""What AWS charges.  The one place with prices: `splitshift cost` multiplies them, and says whose they are and of when.

List prices in USD without tax, without the free allowances of an account, and without anybody's discount.
"""

from __future__ import annotations

from functions.kit.dataclass import dataclass

REGION = "us-east-1"
LOOKED_UP = "2026-11-29"
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Price:
    """`usd` for so many (`per`) of `what`, `one` where there may be a single one; `page` is where AWS says so."""

    usd: float
    what: str
    page: str
    per: int = 1
    one: str = ""

    def of(self, quantity: float) -> float:
        return quantity * self.usd / self.per

    def named(self, quantity: float) -> str:
        return self.one if self.one and quantity == 1 else self.what


_CLOUDWATCH = "https://aws.amazon.com/cloudwatch/pricing/"
_DYNAMODB = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
_LAMBDA = "https://aws.amazon.com/lambda/pricing/"

ALARM = Price(usd=0.10, what="metrics of alarms, a month", page=_CLOUDWATCH)
DASHBOARD = Price(usd=3.00, what="dashboards, a month", one="dashboard, a month", page=_CLOUDWATCH)
LOGS = Price(usd=0.50, what="GB of logs taken in", page=_CLOUDWATCH)
KEY = Price(usd=1.00, what="customer keys, a month", page="https://aws.amazon.com/kms/pricing/")
ENDPOINT_HOURS = Price(
    usd=0.01, what="hours of VPC endpoints, by zone", page="https://aws.amazon.com/privatelink/pricing/"
)
WRITES = Price(usd=0.625, per=MILLION, what="write request units", page=_DYNAMODB)
READS = Price(usd=0.125, per=MILLION, what="read request units", page=_DYNAMODB)
KEPT = Price(usd=0.25 + 0.20, what="GB kept, with point-in-time recovery, a month", page=_DYNAMODB)
REQUESTS = Price(usd=0.20, per=MILLION, what="Lambda invocations", page=_LAMBDA)
GB_SECONDS = Price(usd=0.0000133334, what="GB seconds on arm64", page=_LAMBDA)
MESSAGES = Price(usd=0.40, per=MILLION, what="SQS requests", page="https://aws.amazon.com/sqs/pricing/")
TICKS = Price(
    usd=1.00, per=MILLION, what="EventBridge Scheduler invocations", page="https://aws.amazon.com/eventbridge/pricing/"
)
