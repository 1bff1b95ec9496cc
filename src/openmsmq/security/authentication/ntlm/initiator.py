"""The side of NTLM that calls: it proves to know a password without sending it."""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from openmsmq.security.access.callers import Caller
from openmsmq.security.authentication.ntlm.context import REQUIRED, NtlmContext, insist
from openmsmq.security.authentication.ntlm.keys import (
    CHALLENGE_BYTES,
    KEY_BYTES,
    Direction,
    message_integrity,
    proof,
    rc4,
    response_key,
    session_base_key,
)
from openmsmq.security.authentication.ntlm.messages import (
    AV_FLAG_HAS_MIC,
    Authenticate,
    AvId,
    Flag,
    Negotiate,
    decode_challenge,
    decode_pairs,
    encode_pairs,
)
from openmsmq.security.authentication.ntlm.parties import Chance, Credentials
from openmsmq.security.authentication.ntlm.protection import Protection
from openmsmq.security.authentication.ports import AuthenticationFailed, Step
from openmsmq.wire.errors import DecodeError

_WANTED = (
    REQUIRED
    | Flag.SIGN
    | Flag.SEAL
    | Flag.NTLM
    | Flag.ALWAYS_SIGN
    | Flag.REQUEST_TARGET
    | Flag.TARGET_INFO
    | Flag.VERSION
    | Flag.KEY_56
)


class _State(Enum):
    FRESH = auto()
    ASKED = auto()
    DONE = auto()
    FAILED = auto()


class NtlmInitiator(NtlmContext):
    """One authentication by NTLM, on the side of the client."""

    def __init__(self, credentials: Credentials, chance: Chance, target_name: str = "") -> None:
        super().__init__()
        if len(chance.challenge) != CHALLENGE_BYTES or len(chance.session_key) != KEY_BYTES:
            raise ValueError("NTLM wants a challenge of 8 bytes and a key of 16")
        self._credentials = credentials
        self._chance = chance
        self._target_name = target_name
        self._state = _State.FRESH
        self._negotiate = b""

    def step(self, token: bytes) -> Step:
        """Begin with an empty token, then take the challenge of the server."""
        state, self._state = self._state, _State.FAILED
        if state is _State.FRESH and not token:
            self._state = _State.ASKED
            self._negotiate = Negotiate(_WANTED).encode()
            return Step(self._negotiate, is_complete=False)
        if state is not _State.ASKED:
            raise AuthenticationFailed("this authentication by NTLM is over")
        try:
            return self._answer(token)
        except DecodeError as error:
            raise AuthenticationFailed(str(error)) from None

    @property
    def caller(self) -> Caller:
        """Nobody: NTLM proves only that the server knows the password, too."""
        raise AuthenticationFailed("NTLM does not say who a server is")

    @property
    def asks_for_mic(self) -> bool:
        """Whether the list of mechanisms is to be signed: always, as the messages are."""
        return True

    def _answer(self, token: bytes) -> Step:
        asked = decode_challenge(token)
        insist(asked.flags, REQUIRED | Flag.TARGET_INFO | Flag.SIGN | Flag.SEAL, "the server")
        agreed = asked.flags & _WANTED
        told = decode_pairs(asked.target_info)
        time = told.get(AvId.TIMESTAMP, self._chance.time.to_bytes(8, "little"))
        if len(time) != 8:
            raise AuthenticationFailed("the server says no time that can be read")
        said = {
            **told,
            AvId.FLAGS: AV_FLAG_HAS_MIC.to_bytes(4, "little"),
            AvId.CHANNEL_BINDINGS: bytes(16),
            AvId.TARGET_NAME: self._target_name.encode("utf-16-le"),
        }
        head = b"\x01\x01" + bytes(6) + time + self._chance.challenge + bytes(4)
        # Windows, and those who write what Windows reads, put four more zeros at the end.
        blob = head + encode_pairs(said) + bytes(4)
        who = self._credentials
        key = response_key(who.nt_hash, who.user, who.domain)
        proved = proof(key, asked.server_challenge, blob)
        message = Authenticate(
            flags=agreed,
            user=who.user,
            domain=who.domain,
            nt_response=proved + blob,
            lm_response=bytes(24),
            encrypted_key=rc4(session_base_key(key, proved)).update(self._chance.session_key),
            mic=b"",
            workstation=who.workstation,
        )
        mic = message_integrity(self._chance.session_key, self._negotiate, token, message.encode())
        protection = Protection(self._chance.session_key, Direction.FROM_CLIENT, exchanged_key=True)
        self._begin(protection, agreed)
        self._state = _State.DONE
        return Step(msgspec.structs.replace(message, mic=mic).encode(), is_complete=True)
