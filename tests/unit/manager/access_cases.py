"""Who may do what, written down: every request for every kind of caller, and right by right.

Nothing here is read from the rules of the queue manager: it is what they are held against.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from openmsmq.api import messages as api
from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.model.error_catalogue import CATALOGUE
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.access import MANAGER, QUEUE
from openmsmq.security.access.descriptors import AccessEntry, Descriptor, encode
from openmsmq.security.access.sids import ADMINISTRATORS, Sid, unix_user
from tests.strategies.messages import Draft

ALICE = unix_user(70_001)
BOB = unix_user(70_002)
QUEUE_NAME = r"private$\guarded"
BOOKED = r"private$\guarded-ledger"
"""A transactional queue, which the token for some queues covers too."""
OTHER = r"private$\other"
COVERED = r"private$\guarded*"
ELSEWHERE = r"DIRECT=TCP:127.0.0.99\private$\orders"
Ask = Callable[[api.AnyRequest], api.AnyReply | None]


def only(user: Sid, rights: int) -> bytes:
    """A descriptor that gives somebody these rights, and administrators all."""
    everything = AccessEntry(ADMINISTRATORS, 0x10000000)
    entries = (everything, AccessEntry(user, rights)) if rights else (everything,)
    return encode(Descriptor(ADMINISTRATORS, b"", entries))


def error_of(reply: api.AnyReply | None) -> str:
    """The name of a failure; empty for anything else, a call that has no answer yet included."""
    return CATALOGUE[reply.code].name if isinstance(reply, api.Failed) else ""


# Every request for every kind of caller.

KINDS = (
    "nobody from elsewhere",
    "token to send",
    "token to receive",
    "token for some queues",
    "token of an administrator",
    "another user",
    "the server's own user",
    "certificate of a user",
)
"""The columns of the table. Whose token is revoked, expired or nonsense does not come in at all."""

DONE, DENIED, UNKNOWN = "y", "-", "?"
"""Carried out; refused; and told that there is no such transaction, though there is one."""


class RefusedError(Exception):
    """A step on the way to a request was refused."""

    def __init__(self, reply: api.Failed) -> None:
        super().__init__(reply.detail)
        self.reply = reply


class Actor:
    """Somebody who asks, and what there is of others that can be asked for."""

    def __init__(self, ask: Ask, victims_unit: bytes, victims_number: int) -> None:
        self.ask = ask
        self.victims_unit = victims_unit
        self.victims_number = victims_number

    def step(self, request: api.AnyRequest) -> api.AnyReply:
        reply = self.ask(request)
        assert reply is not None
        if isinstance(reply, api.Failed):
            raise RefusedError(reply)
        return reply

    def open(self, access: AccessMode = AccessMode.RECEIVE, name: str = QUEUE_NAME) -> int:
        reply = self.step(api.OpenQueue(name, access))
        assert isinstance(reply, api.Opened)
        return reply.handle

    def first(self) -> int:
        """The lookup identifier of the first message."""
        reply = self.step(api.FetchRange(self.open(), 0, 1 << 56))
        assert isinstance(reply, api.Entries)
        return reply.entries[0].lookup_id

    def cursor(self) -> int:
        reply = self.step(api.CreateCursor(self.open()))
        assert isinstance(reply, api.CursorCreated)
        return reply.cursor

    def locked(self) -> api.EndReceive:
        handle = self.open()
        reply = self.step(api.Receive(handle, lock=True))
        assert isinstance(reply, api.Entries)
        return api.EndReceive(handle, reply.entries[0].lookup_id, remove=False)

    def begun(self) -> api.Begun:
        reply = self.step(api.Begin())
        assert isinstance(reply, api.Begun)
        return reply

    def prepared(self, query: str = "") -> bytes:
        begun = self.begun()
        self.step(api.Prepare(begun.transaction, query))
        return begun.unit_of_work

    def reserving(self, reader: str = "mine") -> int:
        handle = self.open()
        self.step(api.Reserve(handle, reader, 0))
        return handle

    def opened_somehow(self) -> int:
        """A handle of whatever kind the caller can have."""
        try:
            return self.open(AccessMode.SEND)
        except RefusedError:
            return self.open()


class Row(NamedTuple):
    """A request, and what becomes of it for each kind of caller."""

    kind: type[msgspec.Struct]
    outcomes: str
    """One sign for each of `KINDS`, in their order."""
    request: Callable[[Actor], api.AnyRequest]
    about: str = ""
    errors: tuple[str, ...] = ("",)
    """How it may end for those who may ask: nobody can be granted what makes no sense."""
    has_reservation: bool = False
    """Whether the victim has a reservation in the queue."""

    def __str__(self) -> str:
        return f"{self.kind.__struct_config__.tag} {self.about}".strip()


def _opening(name: str, access: AccessMode, outcomes: str) -> Row:
    about = f"{access.name} {name}"
    return Row(api.OpenQueue, outcomes, lambda _: api.OpenQueue(name, access), about)


VICTIMS_QUERY = "orders by hour"
VICTIMS_READER = "stream of the victim"

TABLE = [
    Row(api.Hello, "yyyyyyyy", lambda _: api.Hello(), errors=("MQ_ERROR_INVALID_PARAMETER",)),
    # Queues.
    Row(api.CreateQueue, "----y-y-", lambda _: api.CreateQueue(r"private$\another")),
    Row(api.ChangeQueue, "---yy-y-", lambda _: api.ChangeQueue(QUEUE_NAME, label="x")),
    Row(api.ChangeQueue, "----y-y-", lambda _: api.ChangeQueue(OTHER, label="x"), "other"),
    Row(api.DeleteQueue, "---yy-y-", lambda _: api.DeleteQueue(QUEUE_NAME)),
    Row(api.DeleteQueue, "----y-y-", lambda _: api.DeleteQueue(OTHER), "other"),
    Row(api.GetQueue, "yyyyyyyy", lambda _: api.GetQueue(QUEUE_NAME)),
    Row(api.GetQueue, "yyy-yyyy", lambda _: api.GetQueue(OTHER), "other"),
    Row(api.GetNames, "yyyyyyyy", lambda _: api.GetNames(QUEUE_NAME)),
    Row(api.ListQueues, "yyyyyyyy", lambda _: api.ListQueues()),
    Row(api.GetSecurity, "y--yyyyy", lambda _: api.GetSecurity(QUEUE_NAME)),
    Row(api.GetSecurity, "y---yyyy", lambda _: api.GetSecurity(), "manager"),
    Row(api.SetSecurity, "---yy-y-", lambda _: api.SetSecurity(QUEUE_NAME, b"")),
    Row(api.SetSecurity, "----y-y-", lambda _: api.SetSecurity(OTHER, b""), "other"),
    Row(api.SetSecurity, "----y-y-", lambda _: api.SetSecurity("", b""), "manager"),
    Row(api.TakeOwnership, "---yy-y-", lambda _: api.TakeOwnership(QUEUE_NAME)),
    Row(api.TakeOwnership, "----y-y-", lambda _: api.TakeOwnership(), "manager"),
    _opening(QUEUE_NAME, AccessMode.RECEIVE, "--yyy-y-"),
    _opening(QUEUE_NAME, AccessMode.PEEK, "--yyy-y-"),
    _opening(QUEUE_NAME, AccessMode.MOVE, "--yyy-y-"),
    _opening(QUEUE_NAME, AccessMode.SEND, "yy-yyyyy"),
    _opening(OTHER, AccessMode.RECEIVE, "--y-y-y-"),
    _opening(OTHER, AccessMode.SEND, "yy--yyyy"),
    _opening(f"{QUEUE_NAME};journal", AccessMode.RECEIVE, "--yyy-y-"),
    _opening(f"{QUEUE_NAME};later", AccessMode.RECEIVE, "--yyy-y-"),
    _opening("system$;deadletter", AccessMode.RECEIVE, "--y-y-y-"),
    _opening("system$;deadxact", AccessMode.PEEK, "--y-y-y-"),
    _opening("system$;journal", AccessMode.RECEIVE, "--y-y-y-"),
    _opening(ELSEWHERE, AccessMode.SEND, "-y--yyyy"),
    _opening(ELSEWHERE, AccessMode.RECEIVE_ADMIN, "----y-y-"),
    _opening(ELSEWHERE, AccessMode.PEEK_ADMIN, "----y-y-"),
    Row(api.CloseQueue, "yyyyyyyy", lambda it: api.CloseQueue(it.opened_somehow())),
    # Messages.
    Row(
        api.Send,
        "yy-yyyyy",
        lambda it: api.Send(it.open(AccessMode.SEND), [Draft().packet()]),
    ),
    Row(api.Receive, "--yyy-y-", lambda it: api.Receive(it.open())),
    Row(api.Seek, "--yyy-y-", lambda it: api.Seek(it.open(), "first")),
    Row(
        api.Find,
        "--yyy-y-",
        lambda it: api.Find(it.open(), message_id=bytes(20)),
        errors=("MQ_ERROR_IO_TIMEOUT",),
    ),
    Row(api.EndReceive, "--yyy-y-", lambda it: it.locked()),
    Row(api.FetchRange, "--yyy-y-", lambda it: api.FetchRange(it.open(), 0, 9)),
    Row(api.FetchPackets, "--yyy-y-", lambda it: api.FetchPackets(it.open(), 0, 9)),
    Row(api.RemoveRange, "--yyy-y-", lambda it: api.RemoveRange(it.open(), 0, 9)),
    Row(api.Measure, "--yyy-y-", lambda it: api.Measure(it.open(), 0)),
    Row(api.Survey, "--yyy-y-", lambda it: api.Survey(it.open(), 0, 9)),
    Row(api.GetEpochs, "yyyyyyyy", lambda _: api.GetEpochs()),
    Row(api.CreateCursor, "--yyy-y-", lambda it: api.CreateCursor(it.open())),
    Row(api.CloseCursor, "--yyy-y-", lambda it: api.CloseCursor(it.cursor())),
    Row(api.Cancel, "yyyyyyyy", lambda _: api.Cancel(99), errors=("MQ_ERROR_INVALID_PARAMETER",)),
    Row(api.Purge, "--yyy-y-", lambda it: api.Purge(it.open())),
    Row(
        api.Move,
        "--yyy-y-",
        lambda it: api.Move(it.open(), it.first(), it.open(AccessMode.MOVE, f"{QUEUE_NAME};b")),
    ),
    # Readers.
    Row(api.Reserve, "--yyy-y-", lambda it: api.Reserve(it.open(), "mine", 0)),
    Row(api.Complete, "--yyy-y-", lambda it: api.Complete(it.reserving(), "mine", 9)),
    Row(
        api.Release,
        "--yyy-y-",
        lambda it: (it.reserving(), api.Release(QUEUE_NAME))[1],
        "what the caller has reserved",
    ),
    Row(
        api.Reserve,
        "----y-y-",
        lambda it: api.Reserve(it.open(), VICTIMS_READER, 0),
        "by the name of another's reader",
        has_reservation=True,
    ),
    Row(
        api.Complete,
        "----y-y-",
        lambda it: api.Complete(it.open(), VICTIMS_READER, 1 << 56),
        "by the name of another's reader",
        has_reservation=True,
    ),
    Row(
        api.Release,
        "---yy-y-",
        lambda _: api.Release(QUEUE_NAME),
        "what another has reserved",
        has_reservation=True,
    ),
    # Transactions.
    Row(api.Begin, "yyyyyyyy", lambda _: api.Begin()),
    Row(api.Prepare, "-yyyyyyy", lambda it: api.Prepare(it.begun().transaction)),
    Row(api.Commit, "yyyyyyyy", lambda it: api.Commit(it.begun().transaction)),
    Row(api.Commit, "????????", lambda it: api.Commit(it.victims_number), "another's by number"),
    Row(api.Abort, "yyyyyyyy", lambda it: api.Abort(it.begun().transaction)),
    Row(api.Abort, "????????", lambda it: api.Abort(it.victims_number), "another's by number"),
    Row(api.ListTransactions, "-yyyyyyy", lambda _: api.ListTransactions()),
    Row(api.Resolve, "-yyyyyyy", lambda it: api.Resolve(it.prepared(), commit=True)),
    Row(
        api.Resolve,
        "-???y?y?",
        lambda it: api.Resolve(it.victims_unit, commit=False),
        "another's",
    ),
    # Batches.
    Row(api.GetBatch, "-y-yyyyy", lambda _: api.GetBatch("mine")),
    Row(api.GetBatch, "----y-y-", lambda _: api.GetBatch(VICTIMS_QUERY), "another's"),
    Row(api.ListQueries, "-yyyyyyy", lambda _: api.ListQueries()),
    Row(
        api.Prepare,
        "----y-y-",
        lambda it: api.Prepare(it.begun().transaction, VICTIMS_QUERY, 1),
        "for another's query",
    ),
    Row(
        api.CommitBatch,
        "-y-yyyyy",
        lambda it: api.CommitBatch("mine", 0, [it.prepared("mine")]),
    ),
    Row(
        api.CommitBatch,
        "----y-y-",
        lambda _: api.CommitBatch(VICTIMS_QUERY, 0, []),
        "another's",
    ),
    Row(api.AbortBatch, "-y-yyyyy", lambda _: api.AbortBatch("mine", 0)),
    Row(api.AbortBatch, "----y-y-", lambda _: api.AbortBatch(VICTIMS_QUERY, 0), "another's"),
    Row(api.ForgetQuery, "-y-yyyyy", lambda _: api.ForgetQuery("mine")),
    Row(api.ForgetQuery, "----y-y-", lambda _: api.ForgetQuery(VICTIMS_QUERY), "another's"),
    # Vouchers.
    Row(
        api.SendOnce,
        "-y-yyyyy",
        lambda it: api.SendOnce(
            it.open(AccessMode.SEND), Draft().packet(f"OS:ALPHA\\{QUEUE_NAME}"), "mine", b"digest"
        ),
    ),
    Row(
        api.GetVoucher,
        "-y-yyyyy",
        lambda _: api.GetVoucher("mine"),
        # One queue manager may serve all kinds of callers: then this key was used before.
        errors=("", "MQ_ERROR_MESSAGE_NOT_FOUND"),
    ),
    # The queue manager.
    Row(api.ListOutgoing, "yyyyyyyy", lambda _: api.ListOutgoing()),
    Row(api.ControlOutgoing, "----y-y-", lambda _: api.ControlOutgoing(ELSEWHERE, "pause")),
    Row(api.SetOnline, "----y-y-", lambda _: api.SetOnline(online=True)),
    Row(api.ReadDirectory, "yyyyyyyy", lambda _: api.ReadDirectory()),
    Row(api.ChangeDirectory, "----y-y-", lambda _: api.ChangeDirectory([])),
    Row(api.RefreshDirectory, "----y-y-", lambda _: api.RefreshDirectory()),
    Row(api.FindQueues, "yyyyyyyy", lambda _: api.FindQueues()),
    Row(api.GetStatus, "yyyyyyyy", lambda _: api.GetStatus()),
    Row(api.PageQueues, "yyyyyyyy", lambda _: api.PageQueues()),
    Row(api.ReadAudit, "----y-y-", lambda _: api.ReadAudit()),
    Row(api.FindMessage, "yyyyyyyy", lambda _: api.FindMessage(bytes(20))),
    Row(api.ListSessions, "yyyyyyyy", lambda _: api.ListSessions()),
    Row(api.PageIncomingSequences, "----y-y-", lambda _: api.PageIncomingSequences()),
    Row(api.ListConnections, "----y-y-", lambda _: api.ListConnections()),
    Row(
        api.CloseConnection,
        "----y-y-",
        lambda _: api.CloseConnection(1 << 40),
        errors=("MQ_ERROR_INVALID_PARAMETER",),
    ),
    Row(api.GetCaller, "yyyyyyyy", lambda _: api.GetCaller()),
    # Keys and certificates.
    Row(
        api.GetEncryptionKeys,
        "yyyyyyyy",
        lambda _: api.GetEncryptionKeys(b"m" * 16),
        errors=("MQ_ERROR_NO_DS",),
    ),
    Row(
        api.RenewKeys,
        "----y-y-",
        lambda _: api.RenewKeys(),
        # Without a directory server around it there are none to renew.
        errors=("", "MQ_ERROR_NO_DS"),
    ),
    # Back-ups.
    Row(
        api.BeginBackup,
        "----y-y-",
        lambda _: api.BeginBackup("relative"),
        errors=("MQ_ERROR_INVALID_PARAMETER",),
    ),
    Row(api.GetBackup, "----y-y-", lambda _: api.GetBackup()),
    # The program around the queue manager, which is not here to answer.
    Row(api.GetConfiguration, "----y-y-", lambda _: api.GetConfiguration()),
    Row(api.Reload, "----y-y-", lambda _: api.Reload()),
    Row(api.SetLogLevel, "----y-y-", lambda _: api.SetLogLevel("debug")),
    Row(
        api.RegisterCertificate,
        "----yyyy",
        lambda _: api.RegisterCertificate(b"none at all"),
        errors=("MQ_ERROR_INVALID_PARAMETER",),
    ),
    Row(
        api.RemoveCertificate,
        "----yyyy",
        lambda _: api.RemoveCertificate(bytes(16)),
        errors=("MQ_ERROR_INVALID_PARAMETER",),
    ),
    Row(api.ListCertificates, "-y-yyyyy", lambda _: api.ListCertificates()),
]
"""Every request at least once, and those again that name something of another."""


class Stage:
    """Where the table is tried: an administrator prepares, a victim has something to lose."""

    def __init__(self, administrator: Ask, victim: Ask) -> None:
        self._administrator = Actor(administrator, b"", 0)
        self._victim = Actor(victim, b"", 0)

    def set(self, row: Row, ask: Ask) -> Actor:
        """Have everything as it was, and something of the victim's."""
        for name in (QUEUE_NAME, BOOKED, OTHER, r"private$\another"):
            self._administrator.ask(api.DeleteQueue(name))
        for name in (QUEUE_NAME, OTHER):
            self._administrator.step(api.CreateQueue(name))
        self._administrator.step(api.CreateQueue(BOOKED, transactional=True))
        self._administrator.step(api.SetSecurity("", b""))
        for query in (VICTIMS_QUERY, "mine"):
            self._administrator.step(api.ForgetQuery(query))
        waiting = self._administrator.step(api.ListTransactions())
        assert isinstance(waiting, api.Transactions)
        for work in waiting.transactions:
            self._administrator.step(api.Resolve(work.unit_of_work, commit=False))
        self._administrator.step(api.OpenQueue(ELSEWHERE, AccessMode.SEND))
        sending = self._administrator.open(AccessMode.SEND)
        self._administrator.step(api.Send(sending, [Draft().packet()]))
        if row.has_reservation:
            self._victim.reserving(VICTIMS_READER)
        self._victims_part()
        begun = self._victim.begun()
        self._victim.step(api.Prepare(begun.transaction))
        return Actor(ask, begun.unit_of_work, begun.transaction)

    def _victims_part(self) -> None:
        begun = self._victim.begun()
        booked = self._victim.open(AccessMode.SEND, BOOKED)
        packets = [Draft(body=b"a part", transactional=True).packet()]
        self._victim.step(api.Send(booked, packets, begun.transaction))
        self._victim.step(api.Prepare(begun.transaction, VICTIMS_QUERY, 0))
        self.part = begun.unit_of_work

    def outcome(self, row: Row, ask: Ask) -> str:
        """Let somebody ask, and say what became of it."""
        actor = self.set(row, ask)
        try:
            request = row.request(actor)
            assert type(request) is row.kind, "the row is about another request"
            reply = ask(request)
        except RefusedError as refused:
            reply = refused.reply
        error = error_of(reply)
        if error == "MQ_ERROR_ACCESS_DENIED":
            self.require_unharmed(actor)
            return DENIED
        if error == "MQ_ERROR_TRANSACTION_SEQUENCE":
            self.require_unharmed(actor)
            return UNKNOWN
        assert error in row.errors, (row, reply)
        return DONE

    def require_unharmed(self, actor: Actor) -> None:
        """After a refusal the victim has what it had, and can end it."""
        found = self._victim.step(api.ListTransactions())
        assert isinstance(found, api.Transactions)
        units = {work.unit_of_work for work in found.transactions}
        assert units == {actor.victims_unit, self.part}
        committed = self._victim.step(api.CommitBatch(VICTIMS_QUERY, 0, [self.part]))
        assert committed == api.BatchCommitted(before=False)


# Right by right.


class Case(NamedTuple):
    """A request, and the rights without which it is refused."""

    request: api.AnyRequest
    on_queue: int = 0
    on_manager: int = 0

    def __str__(self) -> str:
        tag = type(self.request).__struct_config__.tag
        mode = getattr(self.request, "access", None)
        name = getattr(self.request, "name", "")
        return f"{tag} {'' if mode is None else AccessMode(mode).name} {name}".strip()


_SHOW = int(ManagerAccess.GET_PROPERTIES)
_ADMINISTER = int(ManagerAccess.SET_PROPERTIES)
_CHANGE_LIST = int(QueueAccess.CHANGE_PERMISSIONS)

CASES = [
    Case(api.CreateQueue(r"private$\another"), 0, int(ManagerAccess.CREATE_QUEUE)),
    Case(api.ChangeQueue(QUEUE_NAME, label="changed"), int(QueueAccess.SET_PROPERTIES)),
    Case(api.DeleteQueue(QUEUE_NAME), int(QueueAccess.DELETE_QUEUE)),
    Case(api.GetQueue(QUEUE_NAME), int(QueueAccess.GET_PROPERTIES)),
    Case(api.ListQueues(), 0, _SHOW),
    Case(api.GetNames(QUEUE_NAME), 0, _SHOW),
    Case(api.GetSecurity(QUEUE_NAME), int(QueueAccess.GET_PERMISSIONS)),
    Case(api.GetSecurity(), 0, int(ManagerAccess.GET_PERMISSIONS)),
    Case(api.SetSecurity(QUEUE_NAME, only(ALICE, 0x60004)), _CHANGE_LIST),
    Case(api.SetSecurity("", only(ALICE, 0x60004)), 0, _CHANGE_LIST),
    Case(api.TakeOwnership(QUEUE_NAME), int(QueueAccess.TAKE_OWNERSHIP)),
    Case(api.TakeOwnership(), 0, int(ManagerAccess.TAKE_OWNERSHIP)),
    Case(api.Release(QUEUE_NAME), int(QueueAccess.RECEIVE_MESSAGE)),
    Case(api.ListOutgoing(), 0, _SHOW),
    Case(api.ControlOutgoing(ELSEWHERE, "pause"), 0, _ADMINISTER),
    Case(api.SetOnline(online=True), 0, _ADMINISTER),
    Case(api.ReadDirectory(), 0, _SHOW),
    Case(api.ChangeDirectory([]), 0, _ADMINISTER),
    Case(api.RefreshDirectory(), 0, _ADMINISTER),
    Case(api.FindQueues(), 0, _SHOW),
    Case(api.GetStatus(), 0, _SHOW),
    Case(api.PageQueues(), 0, _SHOW),
    Case(api.ReadAudit(), 0, int(ManagerAccess.SET_PROPERTIES)),
    Case(api.FindMessage(bytes(20)), 0, _SHOW),
    Case(api.ListSessions(), 0, _SHOW),
    Case(api.PageIncomingSequences(), 0, _ADMINISTER),
    Case(api.ListConnections(), 0, _ADMINISTER),
    Case(api.CloseConnection(1 << 40), 0, _ADMINISTER),
    Case(api.GetEncryptionKeys(b"m" * 16), 0, _SHOW),
    Case(api.RenewKeys(), 0, _ADMINISTER),
    Case(api.BeginBackup("relative"), 0, _ADMINISTER),
    Case(api.GetBackup(), 0, _ADMINISTER),
    Case(api.GetConfiguration(), 0, _ADMINISTER),
    Case(api.Reload(), 0, _ADMINISTER),
    Case(api.SetLogLevel("debug"), 0, _ADMINISTER),
]
"""Requests that need a right on a queue or on the queue manager."""

OPENINGS = {
    (QUEUE_NAME, AccessMode.RECEIVE): (QueueAccess.RECEIVE_MESSAGE, 0),
    (QUEUE_NAME, AccessMode.PEEK): (QueueAccess.PEEK_MESSAGE, 0),
    (QUEUE_NAME, AccessMode.SEND): (QueueAccess.WRITE_MESSAGE, 0),
    (QUEUE_NAME, AccessMode.MOVE): (QueueAccess.RECEIVE_MESSAGE, 0),
    (f"{QUEUE_NAME};later", AccessMode.RECEIVE): (QueueAccess.RECEIVE_MESSAGE, 0),
    (f"{QUEUE_NAME};later", AccessMode.PEEK): (QueueAccess.PEEK_MESSAGE, 0),
    (f"{QUEUE_NAME};later", AccessMode.MOVE): (QueueAccess.RECEIVE_MESSAGE, 0),
    (f"{QUEUE_NAME};journal", AccessMode.RECEIVE): (QueueAccess.RECEIVE_JOURNAL_MESSAGE, 0),
    (f"{QUEUE_NAME};journal", AccessMode.PEEK): (QueueAccess.PEEK_MESSAGE, 0),
    ("system$;deadletter", AccessMode.RECEIVE): (0, ManagerAccess.RECEIVE_DEAD_LETTER_MESSAGE),
    ("system$;deadletter", AccessMode.PEEK): (0, ManagerAccess.PEEK_DEAD_LETTER_MESSAGE),
    ("system$;deadxact", AccessMode.RECEIVE): (0, ManagerAccess.RECEIVE_DEAD_LETTER_MESSAGE),
    ("system$;deadxact", AccessMode.PEEK): (0, ManagerAccess.PEEK_DEAD_LETTER_MESSAGE),
    ("system$;journal", AccessMode.RECEIVE): (0, ManagerAccess.RECEIVE_JOURNAL_MESSAGE),
    ("system$;journal", AccessMode.PEEK): (0, ManagerAccess.PEEK_JOURNAL_MESSAGE),
    (ELSEWHERE, AccessMode.RECEIVE_ADMIN): (0, ManagerAccess.SET_PROPERTIES),
    (ELSEWHERE, AccessMode.PEEK_ADMIN): (0, ManagerAccess.SET_PROPERTIES),
}
"""Ways to open a queue, and what each needs on the queue and on the queue manager."""

CASES += [
    Case(api.OpenQueue(name, mode), int(on_queue), int(on_manager))
    for (name, mode), (on_queue, on_manager) in OPENINGS.items()
]


def bits(mask: int) -> list[int]:
    return [1 << number for number in range(32) if mask >> number & 1]


class Place:
    """Where cases are tried: an administrator who prepares, and Alice, who asks."""

    def __init__(self, administrator: Ask, alice: Ask) -> None:
        self._administrator = administrator
        self._alice = alice

    def do(self, request: api.AnyRequest) -> None:
        reply = self._administrator(request)
        assert not isinstance(reply, api.Failed), reply

    def prepare(self, on_queue: int, on_manager: int) -> None:
        """Have the queue afresh, and Alice have just these rights."""
        self._administrator(api.DeleteQueue(QUEUE_NAME))
        self._administrator(api.DeleteQueue(r"private$\another"))
        self.do(api.CreateQueue(QUEUE_NAME))
        self.do(api.OpenQueue(ELSEWHERE, AccessMode.SEND))
        self.do(api.SetSecurity(QUEUE_NAME, only(ALICE, on_queue)))
        self.do(api.SetSecurity("", only(ALICE, on_manager)))

    def is_denied(self, case: Case, on_queue: int, on_manager: int) -> bool:
        self.prepare(on_queue, on_manager)
        return error_of(self._alice(case.request)) == "MQ_ERROR_ACCESS_DENIED"

    def show(self, case: Case) -> None:
        """The needed rights are enough, and each of them is needed, whatever else one has."""
        assert not self.is_denied(case, case.on_queue, case.on_manager)
        assert self.is_denied(case, 0, 0)
        for missing in bits(case.on_queue):
            rights = QUEUE.everything & ~missing
            assert self.is_denied(case, rights, MANAGER.everything), hex(missing)
        for missing in bits(case.on_manager):
            rights = MANAGER.everything & ~missing
            assert self.is_denied(case, QUEUE.everything, rights), hex(missing)
