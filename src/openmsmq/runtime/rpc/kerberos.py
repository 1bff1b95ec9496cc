"""Kerberos by the library of the system, both sides, in the style of DCE: three tokens.

The third token proves that the client is there now. So a ticket that somebody has overheard and
sends again is worth nothing, and no file of tickets that were seen is kept.

Only this module imports `gssapi`, which comes with the extra `kerberos`; it is imported where a
keytab is given.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import gssapi
from gssapi import Credentials, SecurityContext, raw
from gssapi import RequirementFlag as Wanted
from gssapi.raw import IOV, GSSError, IOVBufferType

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.rpc.domain_users import DomainUsers
from openmsmq.security.access.callers import Caller
from openmsmq.security.authentication.pac import decode_logon_info
from openmsmq.security.authentication.ports import AuthenticationFailed, Fragment, Level, Step
from openmsmq.wire.errors import DecodeError

TICKET_MAX_BYTES: Final = 64 * 1024
"""Of one token of Kerberos; a ticket with very many groups is long."""

_OTHERS: Final = 0o007
_LOGON_INFO: Final = b"urn:mspac:logon-info"
_Result = TypeVar("_Result")
_Part: TypeAlias = tuple[IOVBufferType, bool, bytes]


def open_keytab(path: Path) -> Credentials:
    """Take the keys of this service out of a file, or raise `ConfigError`."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & _OTHERS:
            raise ConfigError(f"everybody may use the keys in {path}: chmod o= {path}")
    except OSError as error:
        raise ConfigError(f"cannot read the keytab {path}: {error.strerror}") from None
    # In words of the library, which takes bytes only.
    store: dict[bytes | str, bytes | str] = {
        b"keytab": f"FILE:{path}".encode(),
        b"rcache": b"none:",
    }
    try:
        found = raw.acquire_cred_from(store, usage="accept", mechs=[gssapi.MechType.kerberos])
    except GSSError as error:
        raise ConfigError(f"cannot use the keytab {path}: {_reason(error)}") from None
    return gssapi.Credentials(base=found.creds)


class _KerberosContext:
    """One side; what both have in common."""

    def __init__(self, context: SecurityContext) -> None:
        self._context = context
        self._is_dead = False
        self._sizes: dict[bool, int] = {}

    def step(self, token: bytes) -> Step:
        """Take a token of the other side; raises `AuthenticationFailed`, and then for ever."""
        if self._context.complete or len(token) > TICKET_MAX_BYTES:
            self._is_dead = True
        answer = self._guarded(lambda: self._context.step(token or None))
        if self._context.complete:
            self._finish()
        return Step(answer or b"", is_complete=self._context.complete)

    @property
    def asks_for_mic(self) -> bool:
        """Whether the list of mechanisms is to be signed even if nobody had to choose."""
        return False

    def sign_list(self, data: bytes) -> bytes:
        """Return the signature of a list of mechanisms."""
        return self._guarded(lambda: self._ready().get_signature(data))

    def check_list(self, data: bytes, signature: bytes) -> None:
        """Raise `AuthenticationFailed` unless a list of mechanisms has this signature."""
        self._guarded(lambda: self._ready().verify_signature(data, signature))

    def lists_are_signed(self) -> None:
        """Go on: numbers simply go on in Kerberos."""

    def signature_size(self, level: Level) -> int:
        """Return how many bytes the signature of each fragment has."""
        if level < Level.CALL:
            return 0
        seals = level is Level.PRIVACY
        if seals not in self._sizes:
            self._sizes[seals] = self._guarded(lambda: self._measure(seals=seals))
        return self._sizes[seals]

    def protect(
        self, level: Level, fragment: Fragment, *, signs_header: bool
    ) -> tuple[bytes, bytes]:
        """Return the stub as it is sent, and the signature."""
        if level is Level.PRIVACY:
            return self._guarded(lambda: self._seal(fragment, signs_header=signs_header))
        if level < Level.CALL:
            return fragment.stub, b""
        covered = _covered(fragment, signs_header=signs_header)
        return fragment.stub, self._guarded(lambda: self._ready().get_signature(covered))

    def unprotect(
        self, level: Level, fragment: Fragment, signature: bytes, *, signs_header: bool
    ) -> bytes:
        """Return the stub as it was meant, or raise `AuthenticationFailed`."""
        if level is Level.PRIVACY:
            return self._guarded(
                lambda: self._unseal(fragment, signature, signs_header=signs_header)
            )
        if level >= Level.CALL:
            covered = _covered(fragment, signs_header=signs_header)
            self._guarded(lambda: self._ready().verify_signature(covered, signature))
        return fragment.stub

    def _finish(self) -> None:
        """Look at what was agreed on."""
        wanted = {Wanted.mutual_authentication, Wanted.integrity, Wanted.dce_style}
        if not wanted <= set(self._context.actual_flags):
            self._is_dead = True
            raise AuthenticationFailed(
                "the other side uses Kerberos without signing, or not as RPC does (DCE style)"
            )

    def _ready(self) -> SecurityContext:
        if not self._context.complete:
            raise AuthenticationFailed("nobody has proved anything by Kerberos yet")
        return self._context

    def _measure(self, *, seals: bool) -> int:
        context = self._ready()
        if not seals:
            signed = IOV(b"", IOVBufferType.mic_token, std_layout=False)
            raw.get_mic_iov_length(context, signed)
            return len(signed[1].value or b"")
        sealed = IOV(IOVBufferType.header, bytes(16), std_layout=False)
        raw.wrap_iov_length(context, sealed, confidential=True)
        return len(sealed[0].value or b"")

    def _seal(self, fragment: Fragment, *, signs_header: bool) -> tuple[bytes, bytes]:
        before, behind = _around(fragment, signs_header=signs_header)
        parts = IOV(IOVBufferType.header, *before, fragment.stub, *behind, std_layout=False)
        if not raw.wrap_iov(self._ready(), parts, confidential=True):
            raise AuthenticationFailed("Kerberos has agreed on no encryption")
        return parts[1 + len(before)].value or b"", parts[0].value or b""

    def _unseal(self, fragment: Fragment, signature: bytes, *, signs_header: bool) -> bytes:
        before, behind = _around(fragment, signs_header=signs_header)
        head = (IOVBufferType.header, False, signature)
        parts = IOV(head, *before, fragment.stub, *behind, std_layout=False)
        if not raw.unwrap_iov(self._ready(), parts).encrypted:
            raise AuthenticationFailed("a fragment that should be sealed is only signed")
        return parts[1 + len(before)].value or b""

    def _guarded(self, act: Callable[[], _Result]) -> _Result:
        """Do something with the library; whatever fails is the end."""
        if self._is_dead:
            raise AuthenticationFailed("this authentication by Kerberos is over")
        try:
            return act()
        except GSSError as error:
            self._is_dead = True
            raise AuthenticationFailed(f"Kerberos refuses: {_reason(error)}") from None
        except AuthenticationFailed:
            self._is_dead = True
            raise


class KerberosAcceptor(_KerberosContext):
    """One authentication by Kerberos, on the side of the server."""

    def __init__(self, keys: Credentials, users: DomainUsers) -> None:
        super().__init__(gssapi.SecurityContext(creds=keys, usage="accept"))
        self._users = users
        self._caller: Caller | None = None

    @property
    def caller(self) -> Caller:
        """Who the client has proved to be."""
        if self._caller is None:
            raise AuthenticationFailed("nobody has proved to be anybody by Kerberos yet")
        return self._caller

    def _finish(self) -> None:
        super()._finish()
        name = self._context.initiator_name
        try:
            told = name.attributes.get(_LOGON_INFO)
            # What nobody has signed for us, the client may have written itself.
            is_signed = told is not None and told.authenticated and len(told.values) == 1
            user = decode_logon_info(next(iter(told.values))) if is_signed else None
        except DecodeError as error:
            raise AuthenticationFailed(str(error)) from None
        self._caller = self._users.identify(str(name), user)


class KerberosInitiator(_KerberosContext):
    """One authentication by Kerberos, on the side of the client, with the tickets of its user."""

    def __init__(self, host: str, service: str = "host") -> None:
        flags = (
            Wanted.mutual_authentication
            | Wanted.replay_detection
            | Wanted.out_of_sequence_detection
            | Wanted.confidentiality
            | Wanted.integrity
            | Wanted.dce_style
        )
        name = gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service)
        super().__init__(
            gssapi.SecurityContext(
                name=name, usage="initiate", flags=flags, mech=gssapi.MechType.kerberos
            )
        )

    @property
    def caller(self) -> Caller:
        """Who the server has proved to be: the service for which there was a ticket."""
        raise AuthenticationFailed("a server is known by its name, not by a SID")


def _covered(fragment: Fragment, *, signs_header: bool) -> bytes:
    return fragment.header + fragment.stub + fragment.trailer if signs_header else fragment.stub


def _around(fragment: Fragment, *, signs_header: bool) -> tuple[list[_Part], list[_Part]]:
    """Return what is signed before the stub and behind it."""
    if not signs_header:
        return [], []
    kind = IOVBufferType.sign_only
    return [(kind, False, fragment.header)], [(kind, False, fragment.trailer)]


def _reason(error: Exception) -> str:
    """Return the words of the library that say most, as one line."""
    return " ".join(str(error).split())
