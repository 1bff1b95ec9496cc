"""What the two clients have in common: transactions, cursors, queues and managers with their verbs.

A verb is a row of steps. In the client that waits (`Waiting`) it becomes a method that carries them
out and returns their result; in the one for asyncio (`Awaited`) it becomes a coroutine that does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, overload

from openmsmq.client.formatters import Formatter
from openmsmq.client.options import options_of, unknown_option
from openmsmq.client.queue import CursorHandle, QueueHandle
from openmsmq.client.settings import Settings
from openmsmq.client.steps import Steps
from openmsmq.client.verbs import access as access_verbs
from openmsmq.client.verbs import backups as backup_verbs
from openmsmq.client.verbs import directory as directory_verbs
from openmsmq.client.verbs import manager as manager_verbs
from openmsmq.client.verbs import outgoing as outgoing_verbs
from openmsmq.client.verbs import program as program_verbs
from openmsmq.client.verbs import queue as queue_verbs
from openmsmq.client.verbs import read as read_verbs
from openmsmq.client.verbs import security as security_verbs
from openmsmq.client.verbs import transactions
from openmsmq.client.verbs import watching as watching_verbs
from openmsmq.client.verbs.manager import ManagerHandle
from openmsmq.client.verbs.transactions import TransactionHandle
from openmsmq.model.queue import AccessMode, ShareMode

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Waiting:
    """Whose verbs wait for their answers."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make methods of the verbs."""
        super().__init_subclass__(**options)
        _equip(cls, _waiting_method)


class Awaited:
    """Whose verbs are coroutines."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make coroutine methods of the verbs."""
        super().__init_subclass__(**options)
        _equip(cls, _coroutine_method)


class Verb(Generic[Arguments, Result]):
    """Stands in a class for the method that a verb becomes, of either kind."""

    def __init__(self, steps: Callable[Concatenate[Any, Arguments], Steps[Result]]) -> None:
        self.steps = steps
        self.known = options_of(steps)
        self.name = steps.__name__

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the name by which a class has it, unless that is for the class alone."""
        if not name.startswith("_"):
            self.name = name

    @overload
    def __get__(self, owner: Waiting, kind: type) -> Callable[Arguments, Result]: ...

    @overload
    def __get__(
        self, owner: Awaited, kind: type
    ) -> Callable[Arguments, Coroutine[Any, Any, Result]]: ...

    def __get__(self, owner: object, kind: type) -> Any:
        """Say for type checkers what the method is like; it is put in place of this."""
        return self

    def bind(self, owner: Any, args: Any, kwargs: dict[str, Any]) -> Callable[[], Steps[Result]]:
        """Return what makes the steps, again if need be; refuse options that are unknown."""
        if not kwargs.keys() <= self.known:
            raise unknown_option(self.name, kwargs, self.known)
        return lambda: self.steps(owner, *args, **kwargs)


def _equip(kind: type, made: Callable[[Verb[..., Any]], Callable[..., Any]]) -> None:
    """Put methods in the places of verbs, where nobody has put something else there."""
    found = {name for base in kind.__mro__ for name in vars(base)}
    for name in found:
        verb = inspect.getattr_static(kind, name)
        if isinstance(verb, Verb):
            setattr(kind, name, made(verb))


def _waiting_method(verb: Verb[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb.steps)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.connection.run(verb.bind(self, args, kwargs), self)

    return method


def _coroutine_method(verb: Verb[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb.steps)
    async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await self.connection.run(verb.bind(self, args, kwargs), self)

    return method


class AnyTransaction(TransactionHandle):
    """Sends and receives that take effect together."""

    def __init__(self, connection: Any, manager: ManagerHandle) -> None:
        super().__init__(manager.context)
        self.connection = connection

    begin = Verb(transactions.begin)
    prepare = Verb(transactions.prepare)
    commit = Verb(transactions.commit)
    abort = Verb(transactions.abort)


class AnyCursor(CursorHandle):
    """A place in a queue, for looking at one message after the other."""

    def __init__(self, queue: AnyQueue, access: AccessMode) -> None:
        super().__init__(queue, access)
        self.connection = queue.connection

    peek = Verb(read_verbs.cursor_peek)
    next = Verb(read_verbs.cursor_next)
    receive = Verb(read_verbs.cursor_receive)
    close = Verb(read_verbs.cursor_close)


class _Secured:
    """What a queue and a queue manager have in common: an owner, and rights."""

    security = Verb(access_verbs.security)
    set_security = Verb(access_verbs.set_security)
    grant = Verb(access_verbs.grant)
    deny = Verb(access_verbs.deny)
    revoke = Verb(access_verbs.revoke)
    reset_security = Verb(access_verbs.reset_security)
    set_owner = Verb(access_verbs.set_owner)
    take_ownership = Verb(access_verbs.take_ownership)


class AnyQueue(QueueHandle, _Secured):
    """A queue to send to and to read from."""

    cursor_kind: type[Any] = AnyCursor
    """What its cursors are."""

    def __init__(
        self,
        connection: Any,
        manager: ManagerHandle,
        name: str,
        formatter: Formatter,
        access: AccessMode | None = None,
        share: ShareMode = ShareMode.DENY_NONE,
    ) -> None:
        super().__init__(manager.context, name, formatter, access, share)
        self.connection = connection
        self._manager = manager

    send = Verb(queue_verbs.send)
    send_many = Verb(queue_verbs.send_many)
    send_packets = Verb(queue_verbs.send_packets)
    receive = Verb(read_verbs.receive)
    receive_many = Verb(read_verbs.receive_many)
    peek = Verb(read_verbs.peek)
    peek_many = Verb(read_verbs.peek_many)
    receive_by_id = Verb(read_verbs.receive_by_id)
    peek_by_id = Verb(read_verbs.peek_by_id)
    receive_by_correlation_id = Verb(read_verbs.receive_by_correlation_id)
    peek_by_correlation_id = Verb(read_verbs.peek_by_correlation_id)
    receive_by_lookup_id = Verb(read_verbs.receive_by_lookup_id)
    peek_by_lookup_id = Verb(read_verbs.peek_by_lookup_id)
    begin_receive = Verb(read_verbs.begin_receive)
    begin_receive_by_lookup_id = Verb(read_verbs.begin_receive_by_lookup_id)
    end_receive = Verb(read_verbs.end_receive)
    fetch_range = Verb(queue_verbs.fetch_range)
    fetch_packets = Verb(queue_verbs.fetch_packets)
    remove_range = Verb(queue_verbs.remove_range)
    reserve = Verb(queue_verbs.reserve)
    reserve_batch = Verb(queue_verbs.reserve_batch)
    complete = Verb(queue_verbs.complete)
    complete_batch = Verb(queue_verbs.complete_batch)
    measure = Verb(queue_verbs.measure)
    survey = Verb(queue_verbs.survey)
    purge = Verb(queue_verbs.purge)
    move = Verb(queue_verbs.move)
    properties = Verb(queue_verbs.properties)
    count = Verb(queue_verbs.count)
    change = Verb(queue_verbs.change)
    delete = Verb(queue_verbs.delete)
    open = Verb(queue_verbs.open_queue)
    close = Verb(queue_verbs.close)

    @property
    def journal(self) -> Self:
        """The queue where copies of received messages are kept, if the queue keeps any."""
        return self.subqueue("journal")

    def subqueue(self, name: str) -> Self:
        """Return one of its subqueues; messages are moved there, never sent."""
        return type(self)(self.connection, self._manager, f"{self.name};{name}", self.formatter)

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"


QueueKind = TypeVar("QueueKind", bound=AnyQueue)
_TRACED: Final[dict[type[AnyQueue], type[Any]]] = {}


def traced_queues(kind: type[QueueKind]) -> type[QueueKind]:
    """Return the kind of queue whose verbs make spans of OpenTelemetry (decision 0044)."""
    if kind not in _TRACED:
        # Loaded here, so that nobody pays for it who does not ask for it.
        try:
            from openmsmq.client.telemetry import CURSOR_STEPS, QUEUE_STEPS
        except ModuleNotFoundError as error:
            raise RuntimeError(
                f"telemetry=True needs OpenTelemetry ({error}): install openmsmq[telemetry]"
            ) from None
        _TRACED[kind] = _with_steps(
            kind, QUEUE_STEPS, cursor_kind=_with_steps(kind.cursor_kind, CURSOR_STEPS)
        )
    return _TRACED[kind]


def _with_steps(kind: type, steps: Mapping[str, Callable[..., Any]], **others: Any) -> type[Any]:
    """Return a subclass that has other steps for some of its verbs."""
    verbs = {name: Verb(each) for name, each in steps.items()}
    return type(kind.__name__, (kind,), {"__doc__": kind.__doc__, **verbs, **others})


class AnyManager(ManagerHandle, _Secured):
    """A queue manager that this application is connected to."""

    connection: Any

    delete_queue = Verb(manager_verbs.delete_queue)
    queues = Verb(manager_verbs.queues)
    queue_page = Verb(watching_verbs.queue_page)
    exists = Verb(manager_verbs.exists)
    names = Verb(manager_verbs.names)
    format_name = Verb(manager_verbs.format_name)
    path_name = Verb(manager_verbs.path_name)
    status = Verb(manager_verbs.status)
    metrics = Verb(watching_verbs.metrics)
    read_audit = Verb(watching_verbs.read_audit)
    find_message = Verb(watching_verbs.find_message)
    sessions = Verb(watching_verbs.sessions)
    incoming_sequences = Verb(watching_verbs.incoming_sequences)
    connections = Verb(watching_verbs.connections)
    close_connection = Verb(watching_verbs.close_connection)
    in_doubt = Verb(manager_verbs.in_doubt)
    resolve = Verb(manager_verbs.resolve)
    release = Verb(manager_verbs.release)
    epochs = Verb(manager_verbs.epochs)
    last_batch = Verb(manager_verbs.last_batch)
    has_batch = Verb(manager_verbs.has_batch)
    queries = Verb(manager_verbs.queries)
    commit_batch = Verb(manager_verbs.commit_batch)
    abort_batch = Verb(manager_verbs.abort_batch)
    forget_query = Verb(manager_verbs.forget_query)
    outgoing = Verb(outgoing_verbs.outgoing)
    outgoing_queue = Verb(outgoing_verbs.outgoing_queue)
    pause_outgoing = Verb(outgoing_verbs.pause_outgoing)
    resume_outgoing = Verb(outgoing_verbs.resume_outgoing)
    resend_outgoing = Verb(outgoing_verbs.resend_outgoing)
    set_online = Verb(outgoing_verbs.set_online)
    directory_changes = Verb(directory_verbs.directory_changes)
    wait_for_directory = Verb(directory_verbs.wait_for_directory)
    read_directory = Verb(directory_verbs.read_directory)
    write_directory = Verb(directory_verbs.write_directory)
    refresh_directory = Verb(directory_verbs.refresh_directory)
    find_queues = Verb(directory_verbs.find_queues)
    begin_backup = Verb(backup_verbs.begin_backup)
    backup = Verb(backup_verbs.backup)
    configuration = Verb(program_verbs.configuration)
    reload = Verb(program_verbs.reload)
    set_log_level = Verb(program_verbs.set_log_level)
    caller = Verb(access_verbs.caller)
    encryption_keys = Verb(security_verbs.encryption_keys)
    renew_keys = Verb(security_verbs.renew_keys)
    register_certificate = Verb(security_verbs.register_certificate)
    remove_certificate = Verb(security_verbs.remove_certificate)
    certificates = Verb(security_verbs.certificates)
    _create = Verb(manager_verbs.create_queue)

    @property
    def settings(self) -> Settings:
        """How to connect to it again, also from another process."""
        settings: Settings = self.connection.settings
        return settings

    def __repr__(self) -> str:
        return f"<QueueManager {self.name} at {self.settings.address}>"
