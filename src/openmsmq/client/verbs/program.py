"""What an operator can ask of the program around a queue manager, as steps."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.client.steps import Steps, ask
from openmsmq.client.verbs.manager import ManagerHandle


def configuration(manager: ManagerHandle) -> Steps[api.Configuration]:
    """Ask for the configuration as it is in force; for administrators."""
    return (yield from ask(api.GetConfiguration()))


def reload(manager: ManagerHandle) -> Steps[api.Reloaded]:
    """Have everything read again that can change while a queue manager runs."""
    return (yield from ask(api.Reload()))


def set_log_level(manager: ManagerHandle, level: str, *, for_s: int = 0) -> Steps[api.LogLevel]:
    """Have another level logged, for good or for some seconds."""
    return (yield from ask(api.SetLogLevel(level, for_s)))
