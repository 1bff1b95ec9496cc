"""Callers: who an application is to the queue manager, and what it may do at most."""

from __future__ import annotations

import fnmatch
from enum import Enum
from typing import Final

import msgspec

from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.security.access.sids import (
    ADMINISTRATORS,
    ANONYMOUS,
    ANONYMOUS_IDENTITIES,
    AUTHENTICATED,
    LOCAL_SYSTEM,
    Sid,
    account,
    identities,
    sid_words,
    unix_group,
    unix_user,
)

_ALL: Final = 0xFFFFFFFF


class Scope(Enum):
    """What a token is good for."""

    SEND = "send"
    RECEIVE = "receive"
    ADMIN = "admin"


_QUEUE_RIGHTS: Final = {
    Scope.SEND: int(QueueAccess.WRITE_MESSAGE | QueueAccess.GET_PROPERTIES),
    Scope.RECEIVE: int(
        QueueAccess.RECEIVE_MESSAGE
        | QueueAccess.RECEIVE_JOURNAL_MESSAGE
        | QueueAccess.GET_PROPERTIES
    ),
    Scope.ADMIN: _ALL,
}
_MANAGER_RIGHTS: Final = {
    Scope.SEND: int(ManagerAccess.GET_PROPERTIES),
    Scope.RECEIVE: int(
        ManagerAccess.GET_PROPERTIES
        | ManagerAccess.RECEIVE_DEAD_LETTER_MESSAGE
        | ManagerAccess.RECEIVE_JOURNAL_MESSAGE
    ),
    Scope.ADMIN: _ALL,
}


class Caller(msgspec.Struct, frozen=True):
    """Somebody who is connected: for whom the access lists are looked at, and within what bounds.

    A scope takes rights away and never gives any.
    """

    name: str
    """As people know it; it stands in refusals and in the audit log."""
    user: Sid
    sids: frozenset[Sid]
    """The user and all groups."""
    scopes: frozenset[Scope] | None = None
    """None without bounds."""
    queues: tuple[str, ...] = ()
    """Patterns of queue names; empty for all queues."""
    is_unlimited: bool = False
    """Whether nothing is checked at all, because the queue manager is part of its program."""
    token: str = ""
    """The name of the token by which it came in; empty without one."""

    @property
    def is_administrator(self) -> bool:
        """Whether the user looks after the queue manager."""
        return ADMINISTRATORS in self.sids

    @property
    def is_known(self) -> bool:
        """Whether the caller has proved to be somebody."""
        return AUTHENTICATED in self.sids

    @property
    def owner_name(self) -> str:
        """Under whose name is kept what it makes and what outlives its connection.

        Tokens are owners of their own, whoever they stand for: most of them stand for the
        administrators.
        """
        return f"token:{self.token}" if self.token else str(self.user)

    @property
    def is_bounded(self) -> bool:
        """Whether it may do less than the user whom it stands for."""
        return bool(self.queues) or (self.scopes is not None and Scope.ADMIN not in self.scopes)

    @property
    def may_vouch(self) -> bool:
        """Whether others may be told to take somebody for its user from now on.

        Whoever came by a token has the word of the token for a while, and can be told to go; what
        it vouches for stays. Administrators without bounds decide who is who anyway.
        """
        if not self.is_known or self.is_bounded:
            return False
        return not self.token or self.is_administrator

    def covers(self, name: str) -> bool:
        """Whether the bounds let it use a queue of this name."""
        if not self.queues:
            return True
        folded = name.casefold()
        return any(fnmatch.fnmatchcase(folded, pattern.casefold()) for pattern in self.queues)

    def has_scope(self, scope: Scope) -> bool:
        """Whether its bounds let it do this kind of thing at all."""
        return self.scopes is None or Scope.ADMIN in self.scopes or scope in self.scopes

    @property
    def queue_limit(self) -> int:
        """The rights on queues that it can have at most."""
        return _limit(self.scopes, _QUEUE_RIGHTS)

    @property
    def manager_limit(self) -> int:
        """The rights on the queue manager that it can have at most."""
        limit = _limit(self.scopes, _MANAGER_RIGHTS)
        # Who is let in for some queues has nothing to change about all of them.
        return limit & _MANAGER_RIGHTS[Scope.RECEIVE] if self.queues else limit


def _limit(scopes: frozenset[Scope] | None, rights: dict[Scope, int]) -> int:
    if scopes is None:
        return _ALL
    limit = 0
    for scope in scopes:
        limit |= rights[scope]
    return limit


class Origin(msgspec.Struct, frozen=True):
    """From where a caller comes, and since when; for those who look after the queue manager."""

    peer: str = ""
    """An address with a port, or a process of this computer."""
    door: str = ""
    """The kind of door that it came through."""
    since_s: int = 0


UNKNOWN_ORIGIN: Final = Origin()
"""Of whoever is part of the program that drives the queue manager."""

UNLIMITED: Final = Caller(
    "the program itself",
    LOCAL_SYSTEM,
    identities(LOCAL_SYSTEM, (ADMINISTRATORS,)),
    is_unlimited=True,
)
"""Who drives a queue manager without a server in between."""


def anonymous(where: str) -> Caller:
    """Return the caller of whom nothing is known but from where it comes."""
    return Caller(f"an anonymous caller at {where}", ANONYMOUS, ANONYMOUS_IDENTITIES)


def unix_caller(name: str, user: int, groups: frozenset[int], *, administrator: bool) -> Caller:
    """Return the caller that a user of this computer is."""
    sid = unix_user(user)
    also = {unix_group(group) for group in groups}
    if administrator:
        also.add(ADMINISTRATORS)
    return Caller(f"user {name}", sid, identities(sid, frozenset(also)))


def token_caller(
    name: str, user: Sid, scopes: frozenset[Scope] | None, queues: tuple[str, ...] = ()
) -> Caller:
    """Return the caller that shows a token."""
    return Caller(f"token {name}", user, identities(user), scopes, queues, token=name)


def certificate_caller(user: Sid) -> Caller:
    """Return the caller that has proved a registered certificate."""
    return Caller(f"user {user}", user, identities(user))


def account_caller(name: str, *, administrator: bool) -> Caller:
    """Return the caller that has proved to be an account of this queue manager."""
    sid = account(name)
    groups = (ADMINISTRATORS,) if administrator else ()
    return Caller(sid_words(sid), sid, identities(sid, groups))


def domain_caller(name: str, user: Sid, groups: frozenset[Sid], *, administrator: bool) -> Caller:
    """Return the caller that has proved to be a user of a domain."""
    also = groups | {ADMINISTRATORS} if administrator else groups
    return Caller(f"user {name}", user, identities(user, also))
