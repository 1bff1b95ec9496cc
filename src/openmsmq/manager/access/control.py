"""Access control: whether a caller may do what it asks for.

The rights of a queue are in its properties; an empty descriptor stands for the default. Journals
and subqueues have the rights of their queue, system queues those of the queue manager. What was
found out about a descriptor is kept, by its bytes, so that a check is one look into a dictionary.
"""

from __future__ import annotations

from typing import Any, Final

from openmsmq.api.facts import Check, Need
from openmsmq.manager.access.effects import ManagerSecurityChanged
from openmsmq.manager.access.handlers import Handler, HandlerTable
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.model.clock import Instant
from openmsmq.model.errors import AccessDenied
from openmsmq.model.names import SystemQueue
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.access import (
    LOCKED,
    MANAGER,
    MANAGER_DEFAULT,
    QUEUE,
    QUEUE_DEFAULT,
    Kind,
    granted,
)
from openmsmq.security.access.callers import Caller, Scope
from openmsmq.security.access.descriptors import BadDescriptor, decode
from openmsmq.security.access.rights import MANAGER_WORDS, QUEUE_WORDS, words_of
from openmsmq.security.access.sids import ANONYMOUS_IDENTITIES, Sid, sid_words
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader

CHECKS_KEPT_MAX_COUNT: Final = 10_000
"""Outcomes of checks that are kept: one for each pair of a descriptor and a set of SIDs."""

_DELETE: Final = int(QueueAccess.DELETE_MESSAGE)
_PEEK: Final = int(QueueAccess.PEEK_MESSAGE)
_WRITE: Final = int(QueueAccess.WRITE_MESSAGE)
_TAKE_OWNERSHIP: Final = int(QueueAccess.TAKE_OWNERSHIP)
_SHOW: Final = int(QueueAccess.GET_PROPERTIES)
_ADMINISTER: Final = int(ManagerAccess.SET_PROPERTIES)
_OF_MODES: Final = {
    AccessMode.RECEIVE: int(QueueAccess.RECEIVE_MESSAGE),
    AccessMode.PEEK: _PEEK,
    # A message is moved by those who could receive it and send it again.
    AccessMode.MOVE: int(QueueAccess.RECEIVE_MESSAGE),
    AccessMode.SEND: _WRITE,
}


class AccessControl:
    """Knows who may do what with the queues and with the queue manager."""

    def __init__(
        self,
        table: QueueTable,
        ledger: Ledger,
        reader: StoreReader,
        *,
        checks_kept_max: int = CHECKS_KEPT_MAX_COUNT,
    ) -> None:
        self._table = table
        self._ledger = ledger
        self._checks_kept_max = checks_kept_max
        self._queue_checks: dict[tuple[bytes, frozenset[Sid]], int] = {}
        self._manager_checks: dict[tuple[bytes, frozenset[Sid]], int] = {}
        self._anonymous: dict[bytes, bool] = {}
        self.descriptor = reader.get(records.MANAGER_SECURITY_KEY) or b""

    def go_by(self, descriptor: bytes) -> None:
        """Let another descriptor of the queue manager count; an empty one is the default."""
        self.descriptor = descriptor

    # What others ask for every message.

    def may_write(self, queue: LocalQueue, sids: frozenset[Sid]) -> bool:
        """Whether somebody with these SIDs may send to a queue of this computer."""
        return self._queue_rights(security_of(queue), sids) & _WRITE != 0

    def anonymous_may_write(self, queue: LocalQueue) -> bool:
        """Whether everybody may send to a queue of this computer, also without a name."""
        descriptor = security_of(queue)
        known = self._anonymous.get(descriptor)
        if known is None:
            if len(self._anonymous) >= self._checks_kept_max:
                self._anonymous.clear()
            known = self._queue_rights(descriptor, ANONYMOUS_IDENTITIES) & _WRITE != 0
            self._anonymous[descriptor] = known
        return known

    @property
    def checks_kept_count(self) -> int:
        """How many outcomes are kept."""
        return len(self._queue_checks) + len(self._manager_checks) + len(self._anonymous)

    # Rights.

    def rights_on(self, queue: LocalQueue, caller: Caller) -> int:
        """Return all rights of a caller on a queue, as `QueueAccess`."""
        if caller.is_unlimited:
            return QUEUE.everything
        rights = self._queue_rights(security_of(queue), caller.sids)
        if caller.is_administrator:
            rights |= _TAKE_OWNERSHIP
        return rights & caller.queue_limit if caller.covers(owner_of(queue).name) else 0

    def manager_rights(self, caller: Caller) -> int:
        """Return all rights of a caller on the queue manager, as `ManagerAccess`."""
        if caller.is_unlimited:
            return MANAGER.everything
        rights = self._checked(self._manager_checks, self.manager_security, caller.sids, MANAGER)
        if caller.is_administrator:
            rights |= _TAKE_OWNERSHIP
        return rights & caller.manager_limit

    def _queue_rights(self, descriptor: bytes, sids: frozenset[Sid]) -> int:
        return self._checked(self._queue_checks, descriptor or QUEUE_DEFAULT, sids, QUEUE)

    def _checked(
        self,
        checks: dict[tuple[bytes, frozenset[Sid]], int],
        descriptor: bytes,
        sids: frozenset[Sid],
        kind: Kind,
    ) -> int:
        known = checks.get((descriptor, sids))
        if known is not None:
            return known
        try:
            found = decode(descriptor)
        except BadDescriptor:
            # It came from a directory, where others write: nobody can say what was meant.
            found = LOCKED
        rights = granted(found, sids, kind)
        if len(checks) >= self._checks_kept_max:
            checks.clear()
        checks[descriptor, sids] = rights
        return rights

    # The queue manager's own descriptor.

    @property
    def manager_security(self) -> bytes:
        """The descriptor of the queue manager."""
        return self.descriptor or MANAGER_DEFAULT

    @property
    def manager_has_default(self) -> bool:
        """Whether nobody has changed it."""
        return not self.descriptor

    def set_manager_security(self, descriptor: bytes) -> None:
        """Give the queue manager another descriptor; empty is the default."""
        self._ledger.add(ManagerSecurityChanged(self, descriptor))

    # Checks.

    def guarded(self, handlers: HandlerTable) -> HandlerTable:
        """Put a check before every handler that needs one; the others stay as they are."""
        return {kind: self._guard(kind.facts.needs, handler) for kind, handler in handlers.items()}

    def _guard(self, needs: Need, handler: Handler) -> Handler:
        if needs.check in (Check.NOTHING, Check.OPEN, Check.SECURITY):
            return handler

        def guarded(state: Connection, call: int, request: Any, now: Instant) -> None:
            if not state.caller.is_unlimited:
                self._require(state.caller, needs, request)
            handler(state, call, request, now)

        return guarded

    def _require(self, caller: Caller, needs: Need, request: Any) -> None:
        if needs.check is Check.KNOWN:
            self.require_known(caller, "do this")
        elif needs.check is Check.OWNER:
            _require_name(caller)
        elif needs.check is Check.SELF:
            _require_self(caller)
        elif needs.check is Check.MANAGER or (needs.check is Check.OBJECT and not request.name):
            self.require_manager(caller, needs.rights)
        else:
            self.require_queue(caller, self._table.find(request.name), needs.rights)

    def require_known(self, caller: Caller, what: str) -> None:
        """Refuse somebody of whom nothing is known, or whose token is for something else."""
        if caller.is_unlimited:
            return
        if not caller.is_known:
            raise AccessDenied(
                f"{caller.name} may not {what}: connect with a token, a certificate, or as a "
                "user of this computer"
            )
        if not caller.has_scope(Scope.SEND):
            raise AccessDenied(f"{caller.name} may not {what}: its scope does not include send")

    def administers(self, caller: Caller) -> bool:
        """Whether a caller may change the queue manager, and so what belongs to others there."""
        return self.manager_rights(caller) & _ADMINISTER != 0

    def may_use(self, caller: Caller, owner: str) -> bool:
        """Whether something is a caller's own, or the caller looks after everything.

        What an older version has stored without an owner belongs to those who do.
        """
        return caller.owner_name == owner or self.administers(caller)

    def require_manager(self, caller: Caller, rights: int) -> None:
        """Refuse a caller that lacks rights on the queue manager."""
        if rights & ~self.manager_rights(caller):
            raise _denied(caller, "", words_of(rights, MANAGER_WORDS))

    def require_queue(self, caller: Caller, queue: LocalQueue, rights: int) -> None:
        """Refuse a caller that lacks rights on a queue; a system queue's are the manager's."""
        if queue.can.belong_to_manager:
            if not caller.covers(queue.name):
                raise AccessDenied(
                    f"{caller.name} may not use {queue.name}: its token is for other queues"
                )
            self.require_manager(caller, _of_system_queue(queue, rights))
            return
        if queue.can.hold_sent:
            self.require_manager(caller, _ADMINISTER)
            return
        if queue.can.hold_copies and rights & _DELETE:
            rights = rights & ~_DELETE | int(QueueAccess.DELETE_JOURNAL_MESSAGE)
        if rights & ~self.rights_on(queue, caller):
            raise _denied(caller, owner_of(queue).name, words_of(rights, QUEUE_WORDS))

    def may_see(self, caller: Caller, queue: LocalQueue) -> bool:
        """Whether a caller may know the properties of a queue."""
        if caller.is_unlimited:
            return True
        if queue.can.belong_to_manager:
            return caller.covers(queue.name) and self.manager_rights(caller) & _SHOW != 0
        return self.rights_on(queue, caller) & _SHOW != 0

    def require_open(self, caller: Caller, queue: LocalQueue, access: AccessMode) -> None:
        """Refuse a caller that may not open a queue of this computer in this way."""
        if access in _OF_MODES:
            self.require_queue(caller, queue, _OF_MODES[access])
        else:
            self.require_manager(caller, _ADMINISTER)

    def require_elsewhere(self, caller: Caller, name: str) -> None:
        """Refuse a caller that may not send to other computers through this one."""
        self.require_known(caller, f"send to other computers from here, such as to {name}")
        if not caller.covers(name):
            raise AccessDenied(
                f"{caller.name} may not send to {name}: its token is for other queues"
            )

    def require_reading_elsewhere(self, caller: Caller, name: str) -> None:
        """Refuse a caller that may not read queues of other computers through this one."""
        if caller.is_unlimited:
            return
        if not caller.is_known:
            raise AccessDenied(
                f"{caller.name} may not read {name} from here: connect with a token, a "
                "certificate, or as a user of this computer"
            )
        if not caller.has_scope(Scope.RECEIVE) or not caller.covers(name):
            raise AccessDenied(f"{caller.name} may not read {name}: its token is for other things")


def _require_name(caller: Caller) -> None:
    if not caller.is_known:
        raise AccessDenied(
            f"{caller.name} can own nothing that outlives its connection: connect with a token, a "
            "certificate, or as a user of this computer"
        )


def _require_self(caller: Caller) -> None:
    if not caller.may_vouch:
        raise AccessDenied(
            f"{caller.name} may not change certificates: whoever has one is the user from then "
            "on, without the bounds of a token; connect as the user, or as an administrator"
        )


def _denied(caller: Caller, queue: str, words: list[str]) -> AccessDenied:
    """Return who lacks what, and how to come by it."""
    said, what = " and ".join(words), queue or "the queue manager"
    if caller.scopes is not None or caller.queues:
        return AccessDenied(
            f"{caller.name} lacks the right {said} on {what}: its token is for something else, "
            "or the user behind it lacks the right"
        )
    command = f"queue acl grant '{queue}'" if queue else "acl grant"
    return AccessDenied(
        f"{caller.name} lacks the right {said} on {what}; who may set permissions grants it "
        f"with: openmsmq {command} {sid_words(caller.user)} {' '.join(words)}"
    )


def owner_of(queue: LocalQueue) -> LocalQueue:
    """Return the queue whose rights count: journals and subqueues have those of theirs."""
    return queue if queue.parent is None else queue.parent


def security_of(queue: LocalQueue) -> bytes:
    """Return the stored descriptor that counts for a queue; empty for the default."""
    if queue.parent is not None:
        queue = queue.parent
    return queue.properties.security_descriptor


def _of_system_queue(queue: LocalQueue, rights: int) -> int:
    """Say rights on a system queue as rights on the queue manager."""
    found = rights & ~(_DELETE | _PEEK | _WRITE)
    journal = queue.name == SystemQueue.JOURNAL.path_text
    if rights & _DELETE:
        found |= int(
            ManagerAccess.DELETE_JOURNAL_MESSAGE
            if journal
            else ManagerAccess.DELETE_DEAD_LETTER_MESSAGE
        )
    if rights & _PEEK:
        found |= int(
            ManagerAccess.PEEK_JOURNAL_MESSAGE
            if journal
            else ManagerAccess.PEEK_DEAD_LETTER_MESSAGE
        )
    return found
