"""What an application can ask about messages for other computers, as steps.

An outgoing queue goes by the name of the queue that it leads to. To read or empty one, open it
with `AccessMode.PEEK_ADMIN` or `AccessMode.RECEIVE_ADMIN`.
"""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.client.steps import Steps, ask
from openmsmq.client.verbs.manager import ManagerHandle


def outgoing(manager: ManagerHandle) -> Steps[list[api.OutgoingStatus]]:
    """Ask for all outgoing queues: what waits to leave for other computers, and for what."""
    return (yield from ask(api.ListOutgoing())).queues


def outgoing_queue(manager: ManagerHandle, name: str) -> Steps[api.OutgoingStatus]:
    """Ask for one outgoing queue; `QueueNotActive` when nothing waits to go there."""
    return (yield from ask(api.ListOutgoing(name))).queues[0]


def pause_outgoing(manager: ManagerHandle, name: str) -> Steps[None]:
    """Let the messages of an outgoing queue wait until it is resumed."""
    yield from ask(api.ControlOutgoing(name, "pause"))


def resume_outgoing(manager: ManagerHandle, name: str) -> Steps[None]:
    """Let an outgoing queue go on, and try at once to reach where it leads to."""
    yield from ask(api.ControlOutgoing(name, "resume"))


def resend_outgoing(manager: ManagerHandle, name: str) -> Steps[None]:
    """Send the transactional messages again now that are sent and not acknowledged."""
    yield from ask(api.ControlOutgoing(name, "resend"))


def set_online(manager: ManagerHandle, online: bool) -> Steps[None]:
    """Take the queue manager offline, so that it neither sends nor accepts, or back online."""
    yield from ask(api.SetOnline(online))
