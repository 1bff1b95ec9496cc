"""The side of NTLM that is called: it asks for a proof, and finds out whose it is.

Only NTLM version 2 is accepted. LM and NTLM version 1 can be broken within a day by anybody who
has overheard them once; anonymous callers prove nothing. Everything is judged over the bytes as
they were received, never over what we would have written for them.

Channel bindings are not looked at: these connections have no TLS around them. Nor is the name of
the server that a client meant to reach: it can be an alias of which we know nothing. What both are
to prevent, that somebody between two sides passes an authentication on, gains nothing here:
fragments are signed with a key that only the two ends can know.
"""

from __future__ import annotations

import hmac
from enum import Enum, auto
from typing import Final, Protocol

from openmsmq.security.access.callers import Caller
from openmsmq.security.authentication.ntlm.context import REQUIRED, NtlmContext, insist
from openmsmq.security.authentication.ntlm.keys import (
    CHALLENGE_BYTES,
    KEY_BYTES,
    PROOF_BYTES,
    Direction,
    message_integrity,
    proof,
    rc4,
    response_key,
    session_base_key,
)
from openmsmq.security.authentication.ntlm.messages import (
    MIC_BYTES,
    MIC_OFFSET,
    Authenticate,
    AvId,
    AvPairs,
    Challenge,
    ClientProof,
    Flag,
    decode_authenticate,
    decode_client_proof,
    decode_negotiate,
    encode_pairs,
)
from openmsmq.security.authentication.ntlm.parties import Account, Target
from openmsmq.security.authentication.ntlm.protection import Protection
from openmsmq.security.authentication.ports import AuthenticationFailed, Step
from openmsmq.wire.errors import DecodeError

_NT1_RESPONSE_BYTES: Final = 24
_NOBODYS_HASH: Final = bytes(KEY_BYTES)
"""What is reckoned with for a user who is not there, so that it takes as long as for one who is."""

_AGREED: Final = (
    REQUIRED
    | Flag.SIGN
    | Flag.SEAL
    | Flag.NTLM
    | Flag.ALWAYS_SIGN
    | Flag.REQUEST_TARGET
    | Flag.VERSION
    | Flag.KEY_56
)
"""What we agree to if a client asks for it."""


class Accounts(Protocol):
    """Who there is, asked for one connection; it also decides who may try again when."""

    def find(self, user: str) -> Account | None:
        """Return a user, or raise `AuthenticationFailed` if it is too early for another attempt."""

    def note(self, user: str, *, proved: bool) -> None:
        """Take down how an attempt for a user ended."""


class _State(Enum):
    FRESH = auto()
    CHALLENGED = auto()
    PROVED = auto()
    FAILED = auto()


class NtlmAcceptor(NtlmContext):
    """One authentication by NTLM, on the side of the server."""

    def __init__(self, accounts: Accounts, target: Target) -> None:
        super().__init__()
        if len(target.challenge) != CHALLENGE_BYTES:
            raise ValueError(f"a challenge of NTLM has {CHALLENGE_BYTES} bytes")
        self._accounts = accounts
        self._target = target
        self._state = _State.FRESH
        self._sent: tuple[bytes, ...] = ()
        """The messages until now, as they were on the wire."""
        self._agreed = Flag(0)
        self._caller: Caller | None = None
        self._has_mic = False

    def step(self, token: bytes) -> Step:
        """Take a message of the client; raises `AuthenticationFailed`, and then for ever."""
        state, self._state = self._state, _State.FAILED
        try:
            if state is _State.FRESH:
                return self._challenge(token)
            if state is _State.CHALLENGED:
                return self._judge(token)
        except DecodeError as error:
            raise AuthenticationFailed(str(error)) from None
        raise AuthenticationFailed("this authentication by NTLM is over")

    @property
    def caller(self) -> Caller:
        """Who the client has proved to be."""
        if self._caller is None:
            raise AuthenticationFailed("nobody has proved to be anybody by NTLM yet")
        return self._caller

    @property
    def asks_for_mic(self) -> bool:
        """Whether the list of mechanisms is to be signed: if the messages are. [MS-SPNG 3.3.5.1]"""
        return self._has_mic

    def _challenge(self, token: bytes) -> Step:
        wanted = decode_negotiate(token).flags
        insist(wanted, REQUIRED, "the client")
        target = self._target
        self._agreed = wanted & _AGREED | Flag.TARGET_INFO
        if wanted & Flag.REQUEST_TARGET:
            self._agreed |= Flag.TARGET_IS_SERVER
        computer = target.computer.encode("utf-16-le")
        pairs: AvPairs = {
            AvId.DOMAIN: computer,
            AvId.COMPUTER: computer,
            AvId.DNS_DOMAIN: target.dns_computer.encode("utf-16-le"),
            AvId.DNS_COMPUTER: target.dns_computer.encode("utf-16-le"),
            AvId.TIMESTAMP: target.time.to_bytes(8, "little"),
        }
        name = target.computer if wanted & Flag.REQUEST_TARGET else ""
        message = Challenge(self._agreed, target.challenge, name, encode_pairs(pairs)).encode()
        self._sent = (token, message)
        self._state = _State.CHALLENGED
        return Step(message, is_complete=False)

    def _judge(self, token: bytes) -> Step:
        said = decode_authenticate(token)
        self._check_kind(said)
        # Nobody agrees to more than was agreed to before, but a client may want less.
        self._agreed &= said.flags
        insist(self._agreed, REQUIRED, "the client")
        given = decode_client_proof(said.nt_response)
        if len(said.encrypted_key) != KEY_BYTES:
            raise AuthenticationFailed("the client sends no key for the session")
        account = self._accounts.find(said.user)
        session_key = self._session_key(said, given, account, token)
        is_proved = account is not None and session_key is not None
        self._accounts.note(said.user, proved=is_proved)
        if account is None or session_key is None:
            raise AuthenticationFailed(f"{_who(said)} is unknown, or the password is wrong")
        protection = Protection(session_key, Direction.FROM_SERVER, exchanged_key=True)
        self._begin(protection, self._agreed)
        self._caller = account.caller
        self._has_mic = given.has_mic
        self._state = _State.PROVED
        return Step(b"", is_complete=True)

    def _check_kind(self, said: Authenticate) -> None:
        if not said.user and not said.nt_response:
            raise AuthenticationFailed("anonymous callers are refused")
        if len(said.nt_response) == _NT1_RESPONSE_BYTES:
            raise AuthenticationFailed(
                f"{_who(said)} answers with NTLM version 1, which is refused: set "
                "LmCompatibilityLevel of the client to 3 or more"
            )
        if len(said.nt_response) < PROOF_BYTES:
            raise AuthenticationFailed(
                f"{_who(said)} answers without NTLM version 2: LM alone is refused"
            )

    def _session_key(
        self, said: Authenticate, given: ClientProof, account: Account | None, token: bytes
    ) -> bytes | None:
        """Return the key of the session; None if anything of the proof is wrong."""
        stored = _NOBODYS_HASH if account is None else account.nt_hash
        key = response_key(stored, said.user, said.domain)
        expected = proof(key, self._target.challenge, given.blob)
        is_right = hmac.compare_digest(expected, given.proof)
        session_key = rc4(session_base_key(key, expected)).update(said.encrypted_key)
        if given.has_mic:
            # The place of the MIC counts as zeros; everything else as it was received.
            plain = token[:MIC_OFFSET] + bytes(MIC_BYTES) + token[MIC_OFFSET + MIC_BYTES :]
            mic = message_integrity(session_key, *self._sent, plain)
            is_right &= hmac.compare_digest(mic, said.mic)
        return session_key if is_right else None


def _who(said: Authenticate) -> str:
    return f"{said.domain}\\{said.user}" if said.domain else said.user or "somebody"
