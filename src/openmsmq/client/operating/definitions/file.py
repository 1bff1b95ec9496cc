"""The file of definitions: JSON, in one order, and nothing in it that changes by itself.

Who wrote a file may be anybody: it is bounded, everything in it has a type, what is not known is
refused, and what is wrong is told with its place.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import (
    QUEUE_LABEL_MAX_CHARACTERS,
    QUEUE_NAME_MAX_CHARACTERS,
    QUEUES_MAX_COUNT,
    UNLIMITED_KB,
)
from openmsmq.model.names import IllegalName, LocalQueueName, PathName
from openmsmq.model.queue import QueuePrivacy
from openmsmq.security.access.access import QUEUE, plain
from openmsmq.security.access.descriptors import AccessEntry, Descriptor
from openmsmq.security.access.rights import QUEUE_WORDS, mask_of, words_of
from openmsmq.security.access.sids import Sid, parse_sid, sid_words

FORMAT: Final = "openmsmq-definitions-1"
"""What a file says it is."""

DEFINITIONS_MAX_BYTES: Final = 64 << 20
"""A file of definitions."""

ENTRIES_MAX_COUNT: Final = 1_000
"""Entries of one access list in a file."""

_RIGHTS_MAX_COUNT: Final = 32
_PATH_MAX_CHARACTERS: Final = QUEUE_NAME_MAX_CHARACTERS + len("private$\\") + len("localhost\\")
_PRIVACY_WORDS: Final = {each.name.lower(): each for each in QueuePrivacy}

_Path = Annotated[str, msgspec.Meta(max_length=_PATH_MAX_CHARACTERS)]
_Label = Annotated[str, msgspec.Meta(max_length=QUEUE_LABEL_MAX_CHARACTERS)]
_Quota = Annotated[int, msgspec.Meta(ge=0, lt=UNLIMITED_KB)] | None
_Account = Annotated[str, msgspec.Meta(max_length=200)]
_Right = Annotated[str, msgspec.Meta(max_length=40)]


class BadDefinitions(ValueError):
    """A file that cannot be used; the sentence says what is wrong, and where."""


class EntryDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who may, or may not, do something."""

    who: _Account
    rights: Annotated[list[_Right], msgspec.Meta(max_length=_RIGHTS_MAX_COUNT)]
    denied: bool = False
    inherited: bool = False


class RightsDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Whose a queue is, and who may do what with it."""

    entries: Annotated[list[EntryDefinition], msgspec.Meta(max_length=ENTRIES_MAX_COUNT)]
    owner: _Account | None = None
    """None leaves the owner as it is, or makes who imports it the owner of a new queue."""
    group: _Account | None = None


class QueueDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A queue: all that somebody has decided about it."""

    path: _Path
    transactional: bool = False
    label: _Label = ""
    journaling: bool = False
    quota_kb: _Quota = None
    """None for no limit."""
    journal_quota_kb: _Quota = None
    authenticate: bool = False
    privacy: Annotated[str, msgspec.Meta(max_length=20)] = "optional"
    service_type: Annotated[str, msgspec.Meta(max_length=40)] = str(NIL_GUID)
    base_priority: Annotated[int, msgspec.Meta(ge=-(1 << 15), lt=1 << 15)] = 0
    multicast_address: Annotated[str, msgspec.Meta(max_length=30)] = ""
    """Address and port from which it gets messages; empty for none."""
    rights: RightsDefinition | None = None
    """None says nothing about them: a new queue has the rights of new ones, another keeps its."""

    @property
    def name(self) -> LocalQueueName:
        """The queue on its computer."""
        return queue_name(self.path)

    @property
    def privacy_level(self) -> QueuePrivacy:
        """Whether it takes encrypted messages."""
        found = _PRIVACY_WORDS.get(self.privacy)
        if found is None:
            raise BadDefinitions(
                f"{self.path}: privacy {self.privacy!r}; it can be {', '.join(_PRIVACY_WORDS)}"
            )
        return found

    @property
    def service(self) -> Guid:
        """What kind of service it stands for."""
        try:
            return Guid.parse(self.service_type)
        except ValueError as error:
            raise BadDefinitions(f"{self.path}: service_type: {error}") from None

    @property
    def descriptor(self) -> Descriptor | None:
        """Its rights as queue managers have them; None if nothing is said about them."""
        if self.rights is None:
            return None
        try:
            return descriptor_of(self.rights)
        except ValueError as error:
            raise BadDefinitions(f"{self.path}: rights: {error}") from None


class Definitions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a file says."""

    format: str
    queue_manager: Annotated[str, msgspec.Meta(max_length=300)]
    """Whose queues these were; they can be imported anywhere."""
    queues: Annotated[list[QueueDefinition], msgspec.Meta(max_length=QUEUES_MAX_COUNT)]


def queue_name(path: str) -> LocalQueueName:
    """Read the path of a queue of this computer, or raise `BadDefinitions`."""
    try:
        found = PathName.parse(path)
    except IllegalName as error:
        raise BadDefinitions(f"{path!r}: {error}") from None
    queue = found.queue
    if not found.is_local:
        raise BadDefinitions(f"{path}: leave out the computer, as in {queue.path_text}")
    if not isinstance(queue, LocalQueueName) or queue.journal or queue.subqueue is not None:
        raise BadDefinitions(
            f"{path}: only queues of applications can be defined; journals, subqueues and system "
            "queues come by themselves"
        )
    return queue


# Rights.


def descriptor_of(rights: RightsDefinition) -> Descriptor:
    """Return the descriptor that a file means, or raise `ValueError`."""
    entries = tuple(
        AccessEntry(bytes(parse_sid(entry.who)), _mask(entry.rights), entry.denied, entry.inherited)
        for entry in rights.entries
    )
    return Descriptor(_sid_bytes(rights.owner), _sid_bytes(rights.group), entries)


def rights_of(descriptor: Descriptor) -> RightsDefinition:
    """Say a descriptor as a file does; without generic rights, and always with a list."""
    said = plain(descriptor, QUEUE)
    return RightsDefinition(
        [
            EntryDefinition(
                sid_words(Sid(entry.user)),
                words_of(entry.rights, QUEUE_WORDS),
                entry.is_denied,
                entry.is_inherited,
            )
            for entry in said.entries or ()
        ],
        _words(said.owner),
        _words(said.group),
    )


def _mask(rights: list[str]) -> int:
    numbers = [right for right in rights if right.startswith("0x")]
    mask = mask_of((right for right in rights if right not in numbers), QUEUE_WORDS)
    for number in numbers:
        try:
            value = int(number, 16)
        except ValueError:
            value = -1
        if not 0 <= value <= 0xFFFFFFFF:
            raise ValueError(f"{number!r} is no right: a number of 32 bits is needed")
        mask |= value
    return mask


def _sid_bytes(text: str | None) -> bytes:
    return b"" if text is None else bytes(parse_sid(text))


def _words(sid: bytes) -> str | None:
    return sid_words(Sid(sid)) if sid else None


# The file.


def write_definitions(definitions: Definitions) -> bytes:
    """Write a file: the same definitions are the same bytes."""
    ordered = sorted(definitions.queues, key=lambda queue: queue.name.key)
    whole = msgspec.structs.replace(definitions, queues=ordered)
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def read_definitions(data: bytes) -> Definitions:
    """Read a file, and check all that can be checked without a queue manager."""
    if len(data) > DEFINITIONS_MAX_BYTES:
        raise BadDefinitions(f"it has more than {DEFINITIONS_MAX_BYTES} bytes")
    try:
        found = msgspec.json.decode(data, type=Definitions)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDefinitions(f"it is no file of definitions: {error}") from None
    if found.format != FORMAT:
        raise BadDefinitions(f"its format is {found.format!r}; this version reads {FORMAT}")
    seen: set[str] = set()
    for queue in found.queues:
        key = queue.name.key
        if key in seen:
            raise BadDefinitions(f"{queue.path} is in it twice")
        seen.add(key)
        # Each raises if what it reads makes no sense.
        _ = queue.privacy_level, queue.service, queue.descriptor
    return found
