"""The private keys of a queue manager, in files that only its user can read.

They are not in the store: a store that is handed on has no keys in it. A back-up has them.
The name of a file says for which provider the key is and when it was made.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from openmsmq.model.errors import MsmqError
from openmsmq.runtime.owner_file import replace_file
from openmsmq.runtime.start_errors import StartError, os_reason
from openmsmq.security.own_key import KeptKey, OwnKey, OwnSigningKey
from openmsmq.security.peer_certificates import (
    certificate_in_pem,
    certificate_pem,
    key_pem,
    make_peer_certificate,
)
from openmsmq.security.providers import ADVANCED, BASE, ENHANCED, Provider
from openmsmq.security.rsa import USUAL_EXPONENT, PrivateKey
from openmsmq.security.signatures.certificates import (
    COMMON_NAME_MAX_CHARACTERS,
    SERIAL_MAX_BITS,
    BadCertificate,
    make_certificate,
)

KEY_FOLDER: Final = "keys"
"""The place of the keys below the data directory."""

KEY_FILE_MAX_BYTES: Final = 16 * 1024
"""A key of 8,192 bits takes less than half of it."""

KEY_FILES_MAX_COUNT: Final = 100
"""Keys that are read; there are as many only if they are renewed all the time and none removed."""

_FOLDER_MODE: Final = 0o700
_PUBLIC_MODE: Final = 0o644
_DAY_S: Final = 24 * 3600
_CLOCKS_DIFFER_S: Final = 3600
_PROVIDERS: Final = {
    "encryption-advanced": ADVANCED,
    "encryption-enhanced": ENHANCED,
    "encryption-base": BASE,
}
_SIGNING: Final = "signing"
_NAME: Final = re.compile(
    r"(encryption-advanced|encryption-enhanced|encryption-base|signing)-(\d{1,12})\.pem"
)
_CERTIFICATE_DAYS: Final = 36_500
"""A certificate counts as long as the directory has it, whatever it says of its time."""
_LIBRARY_MIN_BITS: Final = 1024
"""The library makes no shorter keys."""


class KeyFiles:
    """The keys of one queue manager."""

    def __init__(self, data: Path, providers: Sequence[Provider], key_bits: int, name: str) -> None:
        self._folder = data / KEY_FOLDER
        self._kinds = [
            *(kind for kind, provider in _PROVIDERS.items() if provider in providers),
            _SIGNING,
        ]
        self._key_bits = key_bits
        self._name = name

    def load(self) -> list[KeptKey]:
        """Read the keys that are there; one that cannot be read is a `StartError`."""
        named = [(path, _NAME.fullmatch(path.name)) for path in self._folder.glob("*.pem")]
        ours = [(int(name[2]), name[1], path) for path, name in named if name is not None]
        return [
            self._read(path, kind, time_s)
            for time_s, kind, path in sorted(ours)[-KEY_FILES_MAX_COUNT:]
        ]

    def load_or_make(self, now_s: int) -> list[KeptKey]:
        """Read the keys; make those that are missing, or shorter than they should be by now."""
        found = self.load()
        kinds = {(_kind(key), key.key.public.bit_length) for key in found}
        have = {kind for kind, bits in kinds if bits >= self._bits(kind)}
        return found + self._make([kind for kind in self._kinds if kind not in have], now_s)

    def make(self, now_s: int) -> list[KeptKey]:
        """Make a new key for each provider, and one to sign with."""
        return self._make(self._kinds, now_s)

    def _make(self, kinds: Iterable[str], now_s: int) -> list[KeptKey]:
        made: list[KeptKey] = []
        for kind in kinds:
            key = self._new(kind, self._free_time(kind, now_s))
            self._write(key)
            made.append(key)
        return made

    def _new(self, kind: str, time_s: int) -> KeptKey:
        key = new_key(self._bits(kind))
        if kind != _SIGNING:
            return OwnKey(_PROVIDERS[kind], key, created_time_s=time_s)
        name = self._name[:COMMON_NAME_MAX_CHARACTERS]
        end_s = time_s + _CERTIFICATE_DAYS * _DAY_S
        serial = secrets.randbits(SERIAL_MAX_BITS) | 1
        certificate = make_certificate(key, name, time_s - _CLOCKS_DIFFER_S, end_s, serial)
        return OwnSigningKey(key, certificate, time_s)

    def _free_time(self, kind: str, now_s: int) -> int:
        """Return a time later than that of all keys: none may be written over, and order counts."""
        names = [_NAME.fullmatch(path.name) for path in self._folder.glob("*.pem")]
        times = [int(name[2]) for name in names if name and name[1] == kind]
        return max([now_s, *(time_s + 1 for time_s in times)])

    def _bits(self, kind: str) -> int:
        # Whoever uses a base provider expects keys of its length.
        return BASE.key_bits if _PROVIDERS.get(kind) is BASE else self._key_bits

    def remove_all_but(self, kept: Sequence[KeptKey]) -> None:
        """Remove the files of keys that are of no use any more."""
        names = {_file_name(key) for key in kept}
        for path in self._folder.glob("*.pem"):
            if _NAME.fullmatch(path.name) and path.name not in names:
                path.unlink(missing_ok=True)
        # A write that was cut off has left a part of a key.
        for path in self._folder.glob("*.new"):
            if _NAME.fullmatch(path.stem):
                path.unlink(missing_ok=True)

    def _read(self, path: Path, kind: str, time_s: int) -> KeptKey:
        try:
            if path.stat().st_mode & 0o077:
                raise StartError(
                    f"{path} can be read by others: allow it to its owner alone (chmod 600), or "
                    "remove it and have a new key made"
                )
            with path.open("rb") as file:
                pem = file.read(KEY_FILE_MAX_BYTES)
            key = PrivateKey.from_pem(pem)
            if kind != _SIGNING:
                return OwnKey(_PROVIDERS[kind], key, created_time_s=time_s)
            return OwnSigningKey(key, certificate_in_pem(pem), time_s)
        except OSError as error:
            raise StartError(f"cannot read the key {path} ({os_reason(error)})") from None
        except MsmqError as error:
            raise StartError(f"{path} is no key: {error.detail}") from None
        except BadCertificate as error:
            raise StartError(
                f"{path} has no certificate behind its key ({error}): remove it, and a new key is "
                "made"
            ) from None

    def _write(self, key: KeptKey) -> None:
        path = self._folder / _file_name(key)
        try:
            self._folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
            replace_file(path, _content(key))
        except OSError as error:
            raise StartError(f"cannot write the key {path} ({os_reason(error)})") from None


def make_session_files(certificate: Path, key: Path, name: str, now_s: int, days: int) -> None:
    """Make a key and a certificate for sessions over TLS, in place of those that are there.

    A queue manager that looks in between finds two that do not belong together, and waits.
    """
    made = ec.generate_private_key(ec.SECP256R1())
    serial = secrets.randbits(SERIAL_MAX_BITS) | 1
    # The clocks of others may be a little behind.
    begin_s = now_s - _CLOCKS_DIFFER_S
    der = make_peer_certificate(made, name, begin_s, now_s + days * _DAY_S, serial)
    try:
        key.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        replace_file(key, key_pem(made))
        replace_file(certificate, certificate_pem(der), _PUBLIC_MODE)
    except OSError as error:
        raise StartError(f"cannot write {key} and {certificate} ({os_reason(error)})") from None


def new_key(bits: int) -> PrivateKey:
    """Make a key pair of the random numbers of the system."""
    if bits < _LIBRARY_MIN_BITS:
        return PrivateKey.generate(bits, secrets.token_bytes)
    return PrivateKey(rsa.generate_private_key(USUAL_EXPONENT, bits))


def _content(key: KeptKey) -> bytes:
    if isinstance(key, OwnKey):
        return key.key.to_pem()
    return key.key.to_pem() + certificate_pem(key.certificate)


def _kind(key: KeptKey) -> str:
    if not isinstance(key, OwnKey):
        return _SIGNING
    return next(kind for kind, provider in _PROVIDERS.items() if provider is key.provider)


def _file_name(key: KeptKey) -> str:
    return f"{_kind(key)}-{key.created_time_s}.pem"
