"""The private keys of a queue manager, in files that only its user can read.

They are not in the store: a store that is handed on has no keys in it. A back-up has them.
The name of a file says for which provider the key is and when it was made.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from openmsmq.model.errors import MsmqError
from openmsmq.runtime.owner_file import replace_file
from openmsmq.runtime.start_errors import StartError, os_reason
from openmsmq.security.own_key import OwnKey
from openmsmq.security.peer_certificates import certificate_pem, key_pem, make_peer_certificate
from openmsmq.security.providers import ADVANCED, BASE, ENHANCED, Provider
from openmsmq.security.rsa import USUAL_EXPONENT, PrivateKey
from openmsmq.security.signatures.certificates import SERIAL_MAX_BITS

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
_WORDS: Final = {"advanced": ADVANCED, "enhanced": ENHANCED, "base": BASE}
_NAME: Final = re.compile(r"encryption-(advanced|enhanced|base)-(\d{1,12})\.pem")
_LIBRARY_MIN_BITS: Final = 1024
"""The library makes no shorter keys."""


class KeyFiles:
    """The keys of one queue manager."""

    def __init__(self, data: Path, providers: Sequence[Provider], key_bits: int) -> None:
        self._folder = data / KEY_FOLDER
        self._providers = providers
        self._key_bits = key_bits

    def load(self) -> list[OwnKey]:
        """Read the keys that are there; one that cannot be read is a `StartError`."""
        named = [(path, _NAME.fullmatch(path.name)) for path in self._folder.glob("*.pem")]
        ours = [(int(name[2]), name[1], path) for path, name in named if name is not None]
        return [
            OwnKey(_WORDS[word], self._read(path), created_time_s=time_s)
            for time_s, word, path in sorted(ours)[-KEY_FILES_MAX_COUNT:]
        ]

    def load_or_make(self, now_s: int) -> list[OwnKey]:
        """Read the keys; make those that are missing, or shorter than they should be by now."""
        found = self.load()
        have = {
            key.provider for key in found if key.key.public.bit_length >= self._bits(key.provider)
        }
        missing = [provider for provider in self._providers if provider not in have]
        return found + self._make(missing, now_s)

    def make(self, now_s: int) -> list[OwnKey]:
        """Make a new key for each provider."""
        return self._make(self._providers, now_s)

    def _make(self, providers: Sequence[Provider], now_s: int) -> list[OwnKey]:
        made: list[OwnKey] = []
        for provider in providers:
            key = OwnKey(
                provider,
                new_key(self._bits(provider)),
                created_time_s=self._free_time(provider, now_s),
            )
            self._write(key)
            made.append(key)
        return made

    def _free_time(self, provider: Provider, now_s: int) -> int:
        """Return a time later than that of all keys: none may be written over, and order counts."""
        names = [_NAME.fullmatch(path.name) for path in self._folder.glob("*.pem")]
        times = [int(name[2]) for name in names if name and _WORDS[name[1]] is provider]
        return max([now_s, *(time_s + 1 for time_s in times)])

    def _bits(self, provider: Provider) -> int:
        # Whoever uses a base provider expects keys of its length.
        return provider.key_bits if provider is BASE else self._key_bits

    def remove_all_but(self, kept: Sequence[OwnKey]) -> None:
        """Remove the files of keys that are of no use any more."""
        names = {_file_name(key) for key in kept}
        for path in self._folder.glob("*.pem"):
            if _NAME.fullmatch(path.name) and path.name not in names:
                path.unlink(missing_ok=True)
        # A write that was cut off has left a part of a key.
        for path in self._folder.glob("*.new"):
            if _NAME.fullmatch(path.stem):
                path.unlink(missing_ok=True)

    def _read(self, path: Path) -> PrivateKey:
        try:
            if path.stat().st_mode & 0o077:
                raise StartError(
                    f"{path} can be read by others: allow it to its owner alone (chmod 600), or "
                    "remove it and have a new key made"
                )
            with path.open("rb") as file:
                return PrivateKey.from_pem(file.read(KEY_FILE_MAX_BYTES))
        except OSError as error:
            raise StartError(f"cannot read the key {path} ({os_reason(error)})") from None
        except MsmqError as error:
            raise StartError(f"{path} is no key: {error.detail}") from None

    def _write(self, key: OwnKey) -> None:
        path = self._folder / _file_name(key)
        try:
            self._folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
            replace_file(path, key.key.to_pem())
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


def _file_name(key: OwnKey) -> str:
    [word] = [word for word, provider in _WORDS.items() if provider is key.provider]
    return f"encryption-{word}-{key.created_time_s}.pem"
