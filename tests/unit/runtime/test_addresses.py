from __future__ import annotations

import socket

import pytest

from openmsmq.runtime.addresses import literal, source_for, target


@pytest.mark.parametrize(
    ("own", "peer", "source"),
    [
        (["127.0.0.2"], "127.0.0.3", "127.0.0.2"),
        (["10.0.0.1"], "10.0.0.2", "10.0.0.1"),
        (["10.0.0.1"], "127.0.0.3", "10.0.0.1"),
        (["::1", "127.0.0.1"], "127.0.0.3", "127.0.0.1"),
        (["127.0.0.2"], "::1", None),
        (["0.0.0.0"], "10.0.0.2", None),
        (["127.0.0.2"], "10.0.0.2", None),
        ([], "10.0.0.2", None),
    ],
)
def test_a_connection_comes_from_where_we_listen_if_that_can_be(own, peer, source):
    assert source_for(own, peer) == source


@pytest.mark.parametrize(
    ("host", "address"),
    [("10.0.0.1", "10.0.0.1"), ("[::1]", "::1"), ("beta", None), ("10.0.0", None), ("", None)],
)
def test_an_address_is_told_from_a_name(host, address):
    assert literal(host) == address


def test_only_a_literal_address_has_a_socket_address():
    assert target("127.0.0.2", 1801).address == ("127.0.0.2", 1801)
    assert target("::1", 1801).family == socket.AF_INET6
    assert target("localhost", 1801) is None
    assert target("x" * 300, 1801) is None
