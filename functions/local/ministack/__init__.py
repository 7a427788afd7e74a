"""The AWS that `splitshift up` deploys to: ministack, in an environment and a process of its own."""

from functions.local.ministack.environment import NotInstalledError, environment
from functions.local.ministack.server import Ministack

__all__ = ["Ministack", "NotInstalledError", "environment"]
