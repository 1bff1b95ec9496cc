"""What lies in files beside the log: keys, tokens, certificates. Who lacks one is told by name.

Each computer tells the database the digests of its files, and compares them with those of the
primary. Otherwise somebody would find out when it has taken over, and cannot decrypt.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.runtime.backups.contents import own_parts

LOOK_S: Final = 5
"""How often files are looked at."""

NAMED_MAX_COUNT: Final = 20
"""Files that are named; of more the first ones."""

_DIGEST_BYTES: Final = 16
_BELIEVED_MAX_BYTES: Final = 2 << 20
"""What another computer says of its files; a longer text is none of ours."""

Digests = dict[str, str]


def digests(data: Path, log: str) -> Digests:
    """Return the digest of each file that a back-up has beside the store, by its name.

    They are made with the name of the log, so that those of two queue managers cannot be compared.
    """
    return {part.name: _digest(part.source, log) for part in own_parts(data)}


def _digest(path: Path, log: str) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES, key=log.encode()[:64]).hexdigest()


def encode_digests(found: Digests) -> bytes:
    """Return digests as a text."""
    return msgspec.json.encode(found, order="deterministic")


def decode_digests(text: str) -> Digests | None:
    """Return what a computer has said; None if it has said nothing that makes sense."""
    if not text or len(text) > _BELIEVED_MAX_BYTES:
        return None
    try:
        return msgspec.json.decode(text, type=Digests)
    except msgspec.MsgspecError:
        return None


def differing(one: Digests | None, other: Digests | None) -> list[str]:
    """Return the names of files that two computers do not have alike; nothing if one is silent."""
    if one is None or other is None:
        return []
    names = sorted({*one, *other})
    return [name for name in names if one.get(name) != other.get(name)][:NAMED_MAX_COUNT]
