"""What an application can ask a queue manager for, beside its queues' messages, as steps."""

from __future__ import annotations

from typing import Final, TypedDict, Unpack

from openmsmq.api import messages as api
from openmsmq.client.connections.engine import Keeper
from openmsmq.client.context import ClientContext
from openmsmq.client.options import one_of
from openmsmq.client.steps import Steps, ask, failure
from openmsmq.model.errors import QueueExists, QueueNotFound
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import QueuePrivacy
from openmsmq.security.access.descriptors import Descriptor, encode_given
from openmsmq.security.algorithm_names import SAFE_CIPHER_NAMES


class ManagerHandle(Keeper):
    """What every verb of a queue manager works on."""

    def __init__(self, ciphers: tuple[str, ...] = SAFE_CIPHER_NAMES) -> None:
        self.context = ClientContext(ciphers)
        """Which connection is the current one, and who answers it."""

    @property
    def name(self) -> str:
        """The name of the queue manager."""
        return self.context.manager_name

    @property
    def identifier(self) -> Guid:
        """Who the queue manager is, however it is addressed."""
        return self.context.manager


class QueueOptions(TypedDict, total=False):
    """What a new queue can be; its path apart."""

    transactional: bool
    """Whether it takes messages in transactions only."""
    journaling: bool
    """Whether it keeps copies of received messages."""
    quota_kb: int | None
    """Room for its messages, in kilobytes; None for what new queues have."""
    journal_quota_kb: int | None
    """Room in its journal, likewise."""
    label: str
    authenticate: bool
    """Whether it takes only signed messages."""
    privacy: QueuePrivacy | int
    """Whether it takes encrypted messages, or nothing else."""
    service_type: Guid
    """What kind of service it stands for; others look for it by this."""
    multicast_address: str
    """Address and port, such as `234.1.1.1:8001`, from which it gets messages."""
    base_priority: int
    """Added to the priority of messages on their way to it; public queues only."""
    security: Descriptor
    """Who may do what with it, from its first moment on; without, the rights of a new queue."""


def create_queue(
    manager: ManagerHandle,
    path: str,
    *,
    exist_ok: bool = False,
    **options: Unpack[QueueOptions],
) -> Steps[api.QueueStatus]:
    """Create a queue; with `exist_ok` one that is there, and is as asked for, is as good."""
    if exist_ok:
        # Looked for first: who may not create queues may well use one that is there.
        found = yield from _existing(path, options)
        if found is not None:
            return found
    security = options.get("security")
    request = api.CreateQueue(
        path,
        transactional=options.get("transactional", False),
        journaling=options.get("journaling", False),
        quota_kb=options.get("quota_kb"),
        journal_quota_kb=options.get("journal_quota_kb"),
        label=options.get("label", ""),
        authentication_required=options.get("authenticate", False),
        privacy=_privacy(options.get("privacy", QueuePrivacy.OPTIONAL)),
        service_type=bytes(options.get("service_type", NIL_GUID)),
        base_priority=options.get("base_priority", 0),
        security=b"" if security is None else encode_given(security),
        multicast_address=options.get("multicast_address", ""),
    )
    reply = yield request
    if exist_ok and isinstance(reply, api.Failed) and reply.code == QueueExists.code:
        # Somebody else was quicker.
        found = yield from _existing(path, options)
        if found is not None:
            return found
    if not isinstance(reply, api.Queues):
        raise failure(reply)
    return reply.queues[0]


def _privacy(privacy: QueuePrivacy | int) -> QueuePrivacy:
    return one_of(QueuePrivacy, privacy, "privacy")


def _existing(path: str, options: QueueOptions) -> Steps[api.QueueStatus | None]:
    """Return a queue that is there; raise if it is not what is asked for."""
    reply = yield api.GetQueue(path)
    if isinstance(reply, api.Failed) and reply.code == QueueNotFound.code:
        return None
    if not isinstance(reply, api.Queues):
        raise failure(reply)
    found = reply.queues[0]
    different = [
        f"{name} is {getattr(found, _STATUS_NAMES.get(name, name))!r}, not {wanted!r}"
        for name, wanted in options.items()
        if wanted is not None
        and name not in _NOT_COMPARED
        and getattr(found, _STATUS_NAMES.get(name, name)) != _plain(wanted)
    ]
    if different:
        raise QueueExists(
            f"{found.path_name} is there already and is another queue than asked for: "
            f"{'; '.join(different)}. Ask for one like it, change it, or choose another name"
        )
    return found


_NOT_COMPARED: Final = frozenset({"security"})
"""What the status of a queue does not tell."""

_STATUS_NAMES: Final = {"authenticate": "authentication_required"}
"""Options whose property has another name."""


def _plain(wanted: object) -> object:
    return bytes(wanted) if isinstance(wanted, Guid) else wanted


def delete_queue(manager: ManagerHandle, name: str) -> Steps[None]:
    """Delete a queue with everything in it."""
    yield from ask(api.DeleteQueue(name))


def queues(manager: ManagerHandle, *, everything: bool = False) -> Steps[list[api.QueueStatus]]:
    """Ask for all queues; with `everything` also journals, subqueues and system queues."""
    return (yield from ask(api.ListQueues(everything))).queues


def exists(manager: ManagerHandle, name: str) -> Steps[bool]:
    """Ask whether there is a queue of this name."""
    reply = yield api.GetQueue(name)
    if isinstance(reply, api.Failed) and reply.code == QueueNotFound.code:
        return False
    if not isinstance(reply, api.Queues):
        raise failure(reply)
    return True


def names(manager: ManagerHandle, name: str) -> Steps[api.Names]:
    """Ask for all names of a queue, by path name or format name."""
    return (yield from ask(api.GetNames(name)))


def format_name(manager: ManagerHandle, path: str) -> Steps[str]:
    """Translate a path name into a format name (MQPathNameToFormatName)."""
    return (yield from names(manager, path)).format_name


def path_name(manager: ManagerHandle, format_name: str) -> Steps[str]:
    """Translate a format name into a path name."""
    return (yield from names(manager, format_name)).path_name


def status(manager: ManagerHandle) -> Steps[api.Status]:
    """Ask how the queue manager is."""
    return (yield from ask(api.GetStatus()))


def in_doubt(manager: ManagerHandle) -> Steps[list[api.InDoubt]]:
    """Ask for the prepared transactions that nobody has ended yet."""
    return (yield from ask(api.ListTransactions())).transactions


def resolve(manager: ManagerHandle, unit_of_work: bytes, *, commit: bool) -> Steps[None]:
    """Commit or abort a prepared transaction by its lasting name."""
    yield from ask(api.Resolve(bytes(unit_of_work), commit))


def epochs(manager: ManagerHandle) -> Steps[list[api.Epoch]]:
    """Return the lives of the queue manager that its store remembers; the last one is now."""
    return (yield from ask(api.GetEpochs())).epochs


def release(manager: ManagerHandle, name: str) -> Steps[None]:
    """Release all that a reader has reserved in a queue to its other readers."""
    yield from ask(api.Release(name))


def last_batch(manager: ManagerHandle, query: str) -> Steps[int]:
    """Ask for the last batch that a query has committed; -1 before the first."""
    return (yield from ask(api.GetBatch(query))).batch


def has_batch(
    manager: ManagerHandle,
    query: str,
    batch: int,
    *,
    checkpoint: str = "",
) -> Steps[bool]:
    """Ask whether a batch is the last one that a query has committed.

    Raises `TransactionSequence` if it cannot be written: it is older than the last one, or that
    one was numbered by another checkpoint.
    """
    request = api.GetBatch(query, batch, checkpoint)
    return (yield from ask(request)).batch == batch


def queries(manager: ManagerHandle, *, prefix: str = "") -> Steps[list[api.QueryStatus]]:
    """Ask for the queries whose last batch is remembered, whose names begin so."""
    found: list[api.QueryStatus] = []
    after = ""
    while part := (yield from ask(api.ListQueries(prefix, after))).queries:
        found += part
        after = part[-1].query
    return found


def commit_batch(
    manager: ManagerHandle,
    query: str,
    batch: int,
    units_of_work: list[bytes],
    *,
    checkpoint: str = "",
    row_count: int = -1,
    end: str = "",
) -> Steps[bool]:
    """Commit the prepared parts of a batch, all at once; gives False if it was committed before.

    Parts of the query that are not named, of this batch or an earlier one, are aborted. A
    `checkpoint` is the identity of what numbers the batches, such as the id of a query of Spark.
    Raises `TransactionSequence` as `has_batch` does, and for a batch that was committed before
    with another `end`; if that is not told, with fewer rows, by `row_count`.
    """
    request = api.CommitBatch(query, batch, units_of_work, checkpoint, row_count, end)
    return not (yield from ask(request)).before


def abort_batch(
    manager: ManagerHandle,
    query: str,
    batch: int,
    *,
    checkpoint: str = "",
) -> Steps[None]:
    """Abort the prepared parts of a batch, and of earlier ones, that were not committed."""
    yield from ask(api.AbortBatch(query, batch, checkpoint))


def forget_query(manager: ManagerHandle, query: str, *, is_over: bool = False) -> Steps[None]:
    """Forget the last batch of a query that will not come again, and abort its parts.

    If the query is over for good, what is prepared for it from now on is refused.
    """
    yield from ask(api.ForgetQuery(query, is_over))
