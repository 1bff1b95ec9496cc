"""Hypothesis strategies for names: every valid value, and texts that are nearly names."""

from __future__ import annotations

import ipaddress
import string
from typing import Any

from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.model.names import (
    LOCAL_COMPUTER,
    ConnectorFormatName,
    DirectFormatName,
    DirectProtocol,
    DistributionListFormatName,
    FormatName,
    LocalQueueName,
    MachineFormatName,
    MulticastFormatName,
    MultipleFormatName,
    PathName,
    PrivateFormatName,
    PublicFormatName,
    QueueOnComputer,
    SingleFormatName,
    SystemQueue,
)

# White space, control characters and surrogates stand in no name; the categories say it here in
# another way than the code does.
_NEVER: Any = ["Cs", "Cc", "Zs", "Zl", "Zp"]


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _words(excluded: str, units_max: int) -> st.SearchStrategy[str]:
    plain = "".join(
        character
        for character in string.ascii_letters + string.digits + string.punctuation
        if character not in excluded
    )
    return st.one_of(
        st.text(string.ascii_letters + string.digits, min_size=1, max_size=8),
        st.text(plain, min_size=1, max_size=units_max),
        st.text(
            st.characters(exclude_categories=_NEVER, exclude_characters=excluded),
            min_size=1,
            max_size=units_max,
        ).filter(lambda text: utf16_units(text) <= units_max),
    )


def _spaced(excluded: str, units_max: int) -> st.SearchStrategy[str]:
    """Words of queues, which may have spaces between them."""
    parts = _words(excluded, units_max // 4)
    return _words(excluded, units_max) | st.lists(parts, min_size=2, max_size=3).map(" ".join)


def queue_names(excluded: str = "") -> st.SearchStrategy[str]:
    # The last three are how .NET programs name queues of the system.
    taken = ("private$", "system$", "journal$", "deadletter$", "xactdeadletter$")
    return _spaced('"+,;\\' + excluded, 124).filter(lambda name: name.casefold() not in taken)


def subqueue_names(excluded: str = "") -> st.SearchStrategy[str]:
    return _spaced('"+,;\\' + excluded, 32).filter(
        lambda name: name.casefold() not in ("journal", "deadletter", "deadxact")
    )


def computer_names(excluded: str = "") -> st.SearchStrategy[str]:
    return st.just(LOCAL_COMPUTER) | _words('"\x7f,/;=\\' + excluded, 256).filter(
        lambda name: name.casefold() != "private$"
    )


def guids() -> st.SearchStrategy[Guid]:
    return st.binary(min_size=16, max_size=16).map(Guid)


def ip_addresses() -> st.SearchStrategy[str]:
    """IPv4 and IPv6, in several spellings, some with a zone."""
    ipv6 = st.ip_addresses(v=6)
    return st.one_of(
        st.ip_addresses(v=4).map(str),
        ipv6.map(str),
        ipv6.map(lambda address: address.exploded.upper()),
        ipv6.map(lambda address: f"{address}%eth0"),
    )


def local_queue_names(excluded: str = "") -> st.SearchStrategy[LocalQueueName]:
    return st.builds(
        LocalQueueName,
        name=queue_names(excluded),
        private=st.booleans(),
        subqueue=st.none() | subqueue_names(excluded),
        journal=st.booleans(),
    )


def queues_on_computer(excluded: str = "") -> st.SearchStrategy[QueueOnComputer]:
    return local_queue_names(excluded) | st.sampled_from(SystemQueue)


def path_names() -> st.SearchStrategy[PathName]:
    return st.builds(PathName, computer_names(), queues_on_computer())


def direct_format_names() -> st.SearchStrategy[DirectFormatName]:
    return st.one_of(
        st.builds(
            DirectFormatName,
            protocol=st.just(DirectProtocol.OS),
            host=computer_names(),
            queue=queues_on_computer(),
        ),
        st.builds(
            DirectFormatName,
            protocol=st.just(DirectProtocol.TCP),
            host=ip_addresses(),
            queue=queues_on_computer(),
        ),
        st.builds(
            DirectFormatName,
            protocol=st.sampled_from([DirectProtocol.HTTP, DirectProtocol.HTTPS]),
            host=computer_names(":#?@[]") | ip_addresses(),
            queue=queues_on_computer("/"),
            port=st.none() | st.integers(0, 65535),
        ),
    )


def public_format_names() -> st.SearchStrategy[PublicFormatName]:
    return st.builds(PublicFormatName, guids(), st.booleans())


def private_format_names() -> st.SearchStrategy[PrivateFormatName]:
    return st.builds(PrivateFormatName, guids(), st.integers(0, 0xFFFFFFFF), st.booleans())


def machine_format_names() -> st.SearchStrategy[MachineFormatName]:
    return st.builds(MachineFormatName, guids(), st.sampled_from(SystemQueue))


def connector_format_names() -> st.SearchStrategy[ConnectorFormatName]:
    return st.builds(ConnectorFormatName, guids(), st.booleans())


def multicast_format_names() -> st.SearchStrategy[MulticastFormatName]:
    addresses = st.ip_addresses(network=ipaddress.IPv4Network("224.0.0.0/4")).map(str)
    return st.builds(MulticastFormatName, addresses, st.integers(0, 65535))


def distribution_list_format_names() -> st.SearchStrategy[DistributionListFormatName]:
    return st.builds(DistributionListFormatName, guids(), st.none() | _words("\x7f,", 255))


def single_format_names() -> st.SearchStrategy[SingleFormatName]:
    return st.one_of(
        direct_format_names(),
        public_format_names(),
        private_format_names(),
        machine_format_names(),
        connector_format_names(),
        multicast_format_names(),
        distribution_list_format_names(),
    )


def multiple_format_names() -> st.SearchStrategy[MultipleFormatName]:
    element = single_format_names().filter(lambda name: not name.is_read_only)
    return st.lists(element, min_size=2, max_size=6).map(
        lambda elements: MultipleFormatName(tuple(elements))
    )


def format_names() -> st.SearchStrategy[FormatName]:
    """Every kind of format name, with every kind of part."""
    return single_format_names() | multiple_format_names()


@st.composite
def near(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A text with up to three characters replaced, inserted or deleted, and any letter case."""
    text = draw(texts)
    for _ in range(draw(st.integers(0, 3))):
        position = draw(st.integers(0, len(text)))
        kept = position + draw(st.integers(0, 1))
        text = text[:position] + draw(st.text(_TELLING, max_size=1)) + text[kept:]
    return draw(st.sampled_from([text, text.upper(), text.lower()]))


_TELLING = "\\;:,=$./@{}[]%-+\"' aAfFgGsS0129\x00\x7fé"
