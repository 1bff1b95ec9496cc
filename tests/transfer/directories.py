"""What tests of queue managers with a directory share; `conftest` has the two they begin with."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.limits import DIRECTORY_POLL_S
from openmsmq.directory.rows import changes_in, row_of
from openmsmq.manager.config import DirectoryConfig
from openmsmq.model.directory import Change, DirectoryRole
from tests.transfer.network import Computer, Network

ORIGINAL = DirectoryConfig(role=DirectoryRole.ORIGINAL)
COPY = DirectoryConfig(role=DirectoryRole.COPY)
PATIENT_COPY = DirectoryConfig(role=DirectoryRole.COPY, poll_ms=24 * 3_600_000)
"""A queue manager that learns nothing in time unless it is told to look."""
POLL_MS = DIRECTORY_POLL_S * 1000


def joined(network: Network, name: str, address: str, config: DirectoryConfig = COPY) -> Computer:
    """Start a queue manager with a copy, and let it register itself."""
    computer = network.manager(name, address, config)
    network.run(POLL_MS)
    return computer


def image(computer: Computer) -> DirectoryImage:
    """Return what a queue manager knows of the directory."""
    return computer.manager.directory.copy.image


def change(computer: Computer, *changes: Change) -> tuple[Change, ...]:
    """Change the directory from a queue manager, whichever."""
    reply = computer.ok_soon(api.ChangeDirectory([row_of(each) for each in changes]))
    return changes_in(reply.rows)
