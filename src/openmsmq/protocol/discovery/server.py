"""Answering those who search for a directory server. [MQSD 3.2]

A directory server tells askers of its own site that it is there, and askers of other sites which
directory servers its site has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from openmsmq.directory.image import DirectoryImage
from openmsmq.model.identity import Guid
from openmsmq.model.limits import COMPUTER_NAME_MAX_CHARACTERS, CONNECTED_NETWORKS_MAX_COUNT
from openmsmq.model.names.parts import fold
from openmsmq.protocol.discovery.client import ANSWER_MAX_BYTES
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, ServerEntry
from openmsmq.wire.errors import DecodeError

# Header, 32 networks, the site and the terminator of the list: the rest is for names.
_SERVERS_MAX_BYTES: Final = ANSWER_MAX_BYTES - 32 - 16 * CONNECTED_NETWORKS_MAX_COUNT - 16 - 2


class DiscoveryFacts(msgspec.Struct, frozen=True):
    """What a directory server tells those who search."""

    enterprise: Guid
    sites: tuple[Guid, ...]
    """Its sites; askers of other sites are told the first one."""
    networks: tuple[Guid, ...]
    """Its connected networks. Without one it does not answer (C-115)."""
    servers: tuple[str, ...]
    """The directory servers of its site, by computer name."""
    strict_enterprise: bool = False
    """Whether askers of other enterprises get no answer (C-116, `MqsdStrictEnterprise`)."""


def answer_query(data: bytes, facts: DiscoveryFacts) -> bytes | None:
    """Answer a datagram that came over IP; None when it gets no answer. [MQSD 3.2.5.1]"""
    try:
        # It takes no more than 32 IPX networks: 184 bytes.
        query = DirectoryQuery.decode(data)
    except DecodeError:
        return None
    if facts.strict_enterprise and query.enterprise != facts.enterprise:
        return None
    networks = facts.networks[:CONNECTED_NETWORKS_MAX_COUNT]
    if not networks or not facts.sites:
        return None
    if query.site in facts.sites:
        return DirectoryAnswer(query.request_id, networks).encode()
    servers = _entries(facts.servers)
    if not servers:
        # An answer without servers would say that the asker is of our site.
        return None
    return DirectoryAnswer(query.request_id, networks, facts.sites[0], servers).encode()


def _entries(names: tuple[str, ...]) -> tuple[ServerEntry, ...]:
    """Return the names that an answer can carry, as far as there is room; the directory has any."""
    entries: list[ServerEntry] = []
    left_bytes = _SERVERS_MAX_BYTES
    for name in names:
        if not _can_be_named(name):
            continue
        entry = ServerEntry(name)
        # A comma before the next one.
        left_bytes -= len(str(entry).encode("utf-16-le")) + 2
        if left_bytes < 0:
            break
        entries.append(entry)
    return tuple(entries)


def _can_be_named(name: str) -> bool:
    if not 1 <= len(name) <= COMPUTER_NAME_MAX_CHARACTERS or "," in name or "\0" in name:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def facts_from(
    image: DirectoryImage, manager: Guid, *, strict_enterprise: bool = False
) -> DiscoveryFacts | None:
    """Find in a directory what one of its servers tells; None when it is none, or has no site.

    A server that belongs to no connected network names the enterprise as one (C-115).
    """
    own = image.managers.get(manager)
    enterprise = image.enterprise
    if own is None or own.directory_server is None or not own.sites or enterprise is None:
        return None
    others = [
        other.computer_name
        for other in image.managers.values()
        if other.directory_server is not None
        and other.identifier != manager
        and own.sites[0] in other.sites
    ]
    return DiscoveryFacts(
        enterprise.identifier,
        own.sites,
        own.connected_networks or (enterprise.identifier,),
        (own.computer_name, *sorted(others, key=fold)),
        strict_enterprise,
    )


class DiscoveryServer:
    """Answers queries by what the directory says at the moment."""

    def __init__(
        self,
        manager: Guid,
        image: Callable[[], DirectoryImage],
        *,
        strict_enterprise: bool = False,
    ) -> None:
        self._manager = manager
        self._image = image
        self._strict_enterprise = strict_enterprise
        self._seen: DirectoryImage | None = None
        self._facts: DiscoveryFacts | None = None

    def answer(self, data: bytes) -> bytes | None:
        """Answer a datagram; None when it gets no answer."""
        image = self._image()
        if image is not self._seen:
            # An image never changes, so what was found in it stays true.
            self._seen = image
            self._facts = facts_from(
                image, self._manager, strict_enterprise=self._strict_enterprise
            )
        return None if self._facts is None else answer_query(data, self._facts)
