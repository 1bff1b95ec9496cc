"""Both sides of an authentication by NTLM, as they are before its first message."""

from __future__ import annotations

import msgspec

from openmsmq.security.access.callers import Caller


class Account(msgspec.Struct, frozen=True):
    """Somebody who can prove to be somebody by NTLM."""

    nt_hash: bytes
    caller: Caller


class Target(msgspec.Struct, frozen=True):
    """Who the server says it is."""

    computer: str
    """Its NetBIOS name."""
    dns_computer: str
    challenge: bytes
    """Eight bytes that nobody can foresee, never used twice: the proof is about them."""
    time: int
    """Now, in tenths of microseconds since 1601: a client that hears it signs its messages."""


class Credentials(msgspec.Struct, frozen=True):
    """As whom somebody calls."""

    user: str
    domain: str
    nt_hash: bytes
    workstation: str = ""


class Chance(msgspec.Struct, frozen=True):
    """What a driver hands in for one authentication."""

    challenge: bytes
    """Eight random bytes."""
    session_key: bytes
    """Sixteen random bytes."""
    time: int
    """Now, in tenths of microseconds since 1601; used if the server does not say the time."""
