"""The receiver of effects and alerts, as a process (`Receiver`) and as evidence (`ReceiverLog`)."""

from functions.local.receiver.client import LogEntry, Receiver, ReceiverLog, ReceiverSilentError

__all__ = ["LogEntry", "Receiver", "ReceiverLog", "ReceiverSilentError"]
