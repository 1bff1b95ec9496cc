"""TopologyClientRequest and TopologyServerReply, byte by byte. [MQSD 2.2]"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, ServerEntry
from tests.conformance import ours, peer

identifiers = st.binary(min_size=16, max_size=16)


@pytest.mark.spec("MQSD-2.2.2-02", "MQSD-2.2.2-05")
@given(identifiers, identifiers, identifiers)
def test_a_request_names_enterprise_and_site_of_the_client(
    enterprise: bytes, request: bytes, site: bytes
) -> None:
    query = DirectoryQuery(Guid(enterprise), Guid(request), Guid(site))
    data = struct.pack("<BBH", 0, 1, 0) + enterprise + request + site
    assert query.encode() == data
    assert DirectoryQuery.decode(data) == query


@pytest.mark.spec("MQSD-2.2.3-04")
@given(st.lists(identifiers, min_size=1, max_size=32))
def test_an_answer_has_no_network_mask(networks: list[bytes]) -> None:
    answer = DirectoryAnswer(ours.SOURCE, tuple(map(Guid, networks)))
    data = struct.pack("<BBH16sIII", 0, 2, 0, peer.SOURCE, len(networks), 0, 0)
    assert answer.encode() == data + b"".join(networks)
    assert DirectoryAnswer.decode(answer.encode()) == answer


def test_an_answer_of_another_site_names_it_and_its_servers() -> None:
    servers = (ServerEntry("one"), ServerEntry("two", ip=False, ipx=True))
    answer = DirectoryAnswer(ours.SOURCE, (ours.TARGET,), ours.QUEUE, servers)
    text = peer.text("10one,01two")
    fixed = struct.pack("<BBH16sIII", 0, 2, 0, peer.SOURCE, 1, 0, len(text))
    assert answer.encode() == fixed + peer.TARGET + peer.QUEUE + text
    assert DirectoryAnswer.decode(answer.encode()) == answer
