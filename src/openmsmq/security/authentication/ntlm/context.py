"""What both sides of NTLM have in common: what they insist on, and how they protect fragments."""

from __future__ import annotations

from typing import Final

from openmsmq.security.authentication.ntlm.messages import Flag
from openmsmq.security.authentication.ntlm.protection import SIGNATURE_BYTES, Protection
from openmsmq.security.authentication.ports import AuthenticationFailed, Fragment, Level

REQUIRED: Final = Flag.UNICODE | Flag.EXTENDED_SECURITY | Flag.KEY_128 | Flag.KEY_EXCHANGE
"""What a side must agree to. Everything older or shorter is weak, and no client since 2000 has
less: so nobody between two sides can talk them into it."""

_NAMES: Final = {
    Flag.UNICODE: "names in Unicode",
    Flag.EXTENDED_SECURITY: "extended session security",
    Flag.KEY_128: "keys of 128 bits",
    Flag.KEY_EXCHANGE: "a key of its own for each session",
    Flag.TARGET_INFO: "NTLM version 2",
    Flag.SIGN: "signing",
    Flag.SEAL: "sealing",
}


def insist(flags: Flag, wanted: Flag, who: str) -> None:
    """Raise unless somebody agrees to all that is wanted."""
    missing = _missing(flags, wanted)
    if missing:
        raise AuthenticationFailed(f"{who} does not offer {missing}")


def _missing(flags: Flag, wanted: Flag) -> str:
    return ", ".join(name for flag, name in _NAMES.items() if wanted & flag and not flags & flag)


class NtlmContext:
    """One side, from the moment on when there is a key: it signs and seals."""

    def __init__(self) -> None:
        self._protection: Protection | None = None
        self._missing = dict.fromkeys(Level, "")
        """Of each level, what the other side does not offer that it needs."""

    def _begin(self, protection: Protection, agreed: Flag) -> None:
        """Protect from now on, as far as both have agreed."""
        self._protection = protection
        for level in Level:
            if level >= Level.CALL:
                wanted = Flag.SIGN | Flag.SEAL if level is Level.PRIVACY else Flag.SIGN
                self._missing[level] = _missing(agreed, wanted)

    def signature_size(self, level: Level) -> int:
        """Return how many bytes the signature of each fragment has."""
        if level is Level.PRIVACY:
            # Who cannot seal hears so at once, and not with its first call.
            self._keys_for(level)
        return SIGNATURE_BYTES if level >= Level.CALL else 0

    def protect(
        self,
        level: Level,
        fragment: Fragment,
        *,
        signs_header: bool,  # noqa: ARG002 -- NTLM always does
    ) -> tuple[bytes, bytes]:
        """Return the stub as it is sent, and the signature over the whole fragment."""
        protection = self._keys_for(level)
        if level is Level.PRIVACY:
            return protection.seal(fragment)
        if level >= Level.CALL:
            signature = protection.sign(fragment.header, fragment.stub, fragment.trailer)
            return fragment.stub, signature
        return fragment.stub, b""

    def unprotect(
        self,
        level: Level,
        fragment: Fragment,
        signature: bytes,
        *,
        signs_header: bool,  # noqa: ARG002 -- NTLM always does
    ) -> bytes:
        """Return the stub as it was meant, or raise `AuthenticationFailed`."""
        protection = self._keys_for(level)
        if level is Level.PRIVACY:
            return protection.unseal(fragment, signature)
        if level >= Level.CALL:
            protection.check(signature, fragment.header, fragment.stub, fragment.trailer)
        return fragment.stub

    # What SPNEGO asks of a mechanism.

    @property
    def asks_for_mic(self) -> bool:
        """Whether the list of mechanisms is to be signed even if nobody had to choose."""
        return False

    def sign_list(self, data: bytes) -> bytes:
        """Return the signature of a list of mechanisms."""
        return self._keys().sign(data)

    def check_list(self, data: bytes, signature: bytes) -> None:
        """Raise `AuthenticationFailed` unless a list of mechanisms has this signature."""
        self._keys().check(signature, data)

    def lists_are_signed(self) -> None:
        """Go on behind the signatures of both lists."""
        self._keys().restart_streams()

    def _keys(self) -> Protection:
        if self._protection is None:
            raise AuthenticationFailed("nobody has proved anything by NTLM yet")
        return self._protection

    def _keys_for(self, level: Level) -> Protection:
        missing = self._missing[level]
        if missing:
            raise AuthenticationFailed(f"the other side does not offer {missing}")
        return self._keys()
