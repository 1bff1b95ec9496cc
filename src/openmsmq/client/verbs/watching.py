"""What those ask who watch a queue manager, as steps: pages of queues, sessions, connections."""

from __future__ import annotations

from collections.abc import Iterable

from openmsmq.api import messages as api
from openmsmq.client.metrics import QUEUE_KINDS, QUEUES_MAX_COUNT, metrics_text
from openmsmq.client.options import one_of
from openmsmq.client.steps import Steps, ask
from openmsmq.client.verbs.manager import ManagerHandle, status
from openmsmq.client.verbs.outgoing import outgoing
from openmsmq.client.verbs.read import identifier_bytes
from openmsmq.model.identity import MessageId
from openmsmq.model.limits import QUEUE_PAGE_DEFAULT_COUNT, SEQUENCE_PAGE_DEFAULT_COUNT
from openmsmq.model.queue import QueueOrder, QueueRole


def queue_page(
    manager: ManagerHandle,
    *,
    filter: str = "",
    kinds: Iterable[QueueRole | str] = (),
    sort: QueueOrder | str = QueueOrder.NAME,
    descending: bool = False,
    offset: int = 0,
    limit: int = QUEUE_PAGE_DEFAULT_COUNT,
    with_totals: bool = False,
) -> Steps[api.QueuePage]:
    """Ask for one page of the queues that fit, and how many fit.

    A `filter` with `*`, `?` or `[` is a pattern for the whole name; any other is a part of it.
    Without `kinds` there are only queues of applications. `with_totals` adds up what all hold.
    """
    roles = [one_of(QueueRole, kind, "kinds").value for kind in kinds]
    order = one_of(QueueOrder, sort, "sort").value
    request = api.PageQueues(filter, roles, order, descending, offset, limit, with_totals)
    return (yield from ask(request))


def find_message(
    manager: ManagerHandle, message_id: MessageId | bytes | str, queue: int = 0, start: int = 0
) -> Steps[api.Sightings]:
    """Look for a message in all queues, one step: the reply says where the next one goes on.

    Only what this application may look into is looked through; there is no index of identifiers.
    """
    return (yield from ask(api.FindMessage(identifier_bytes(message_id), queue, start)))


def read_audit(
    manager: ManagerHandle, *, before: str = "", count: int = 50, filter: str = ""
) -> Steps[api.AuditLines]:
    """Ask for a page of the audit log, the newest lines first; for administrators."""
    return (yield from ask(api.ReadAudit(before, count, filter)))


def sessions(manager: ManagerHandle) -> Steps[list[api.SessionStatus]]:
    """Ask for the sessions with other queue managers."""
    return (yield from ask(api.ListSessions())).sessions


def incoming_sequences(
    manager: ManagerHandle,
    *,
    after: bytes = b"",
    limit: int = SEQUENCE_PAGE_DEFAULT_COUNT,
    filter: str = "",
    only_rejected: bool = False,
) -> Steps[api.IncomingSequencePage]:
    """Ask for one page of the sequences of transactional messages that others send here.

    `filter` is a part of the sender's name, identifier or address, or of the queue's name. The page
    says in `after` where the next one goes on. For administrators.
    """
    return (yield from ask(api.PageIncomingSequences(after, limit, filter, only_rejected)))


def connections(manager: ManagerHandle) -> Steps[list[api.ConnectedApplication]]:
    """Ask for the connections of all applications; for administrators."""
    return (yield from ask(api.ListConnections())).connections


def close_connection(manager: ManagerHandle, number: int) -> Steps[None]:
    """End the connection of an application; what it has not committed is undone."""
    yield from ask(api.CloseConnection(number))


def metrics(manager: ManagerHandle) -> Steps[str]:
    """Ask for all that there are metrics of; gives them in the text format of Prometheus."""
    page = yield from queue_page(
        manager, kinds=QUEUE_KINDS, limit=QUEUES_MAX_COUNT, with_totals=True
    )
    found = yield from status(manager)
    waiting = yield from outgoing(manager)
    return metrics_text(found, page, waiting, (yield from sessions(manager)))
