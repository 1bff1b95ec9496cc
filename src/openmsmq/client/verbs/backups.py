"""What an operator can do about back-ups, as steps."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.client.steps import Steps, ask
from openmsmq.client.verbs.manager import ManagerHandle


def begin_backup(manager: ManagerHandle, directory: str) -> Steps[api.BackupState]:
    """Have the queue manager back itself up into a new directory on its own computer.

    On return the moment is fixed that the back-up shows. It goes on whether the connection lasts
    or not; `backup` tells how far it is.
    """
    return (yield from ask(api.BeginBackup(directory)))


def backup(manager: ManagerHandle) -> Steps[api.BackupState]:
    """Ask how far the last back-up has come."""
    return (yield from ask(api.GetBackup()))
