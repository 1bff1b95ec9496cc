from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator

import pytest

from openmsmq.runtime.operating_system.socket_owner import ask_kernel, owner_of, read_tables

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux says whose a TCP socket is"
)
WAYS = [owner_of, read_tables, ask_kernel]


@pytest.fixture(params=["127.0.0.1", "127.3.2.1", "::1"])
def connection(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The end of a client, and the end of a server."""
    with socket.create_server(
        (request.param, 0), family=socket.AF_INET6 if ":" in request.param else socket.AF_INET
    ) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        server, _ = listener.accept()
        with client, server:
            yield client, server


def ends(server: socket.socket) -> tuple[tuple[str, int], tuple[str, int]]:
    theirs, ours = server.getpeername(), server.getsockname()
    return (theirs[0], theirs[1]), (ours[0], ours[1])


@pytest.mark.parametrize("way", WAYS)
def test_the_kernel_says_whose_the_other_end_is(connection, way) -> None:
    _, server = connection
    assert way(*ends(server)) == os.geteuid()


@pytest.mark.parametrize("way", WAYS)
def test_a_socket_that_was_given_up_is_nobodys_although_the_kernel_says_user_0(
    connection, way
) -> None:
    client, server = connection
    client.close()
    assert way(*ends(server)) is None


@pytest.mark.parametrize("way", WAYS)
def test_a_socket_that_was_given_up_with_bytes_under_way_is_nobodys(connection, way) -> None:
    client, server = connection
    client.sendall(bytes(200_000))
    client.close()
    assert way(*ends(server)) is None


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_that_does_not_exist_is_nobodys(connection, way) -> None:
    _, server = connection
    theirs, ours = ends(server)
    assert way((theirs[0], 1), ours) is None
    assert way(theirs, (ours[0], 1)) is None


@pytest.mark.parametrize("way", WAYS)
def test_a_listening_socket_is_not_taken_for_the_other_end(way) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = listener.getsockname()
        assert way(here, ("127.0.0.1", 9)) is None
        assert way(here, ("0.0.0.0", 0)) is None


def test_a_client_that_speaks_ipv6_to_an_ipv4_address_is_found() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_INET6) as client,
    ):
        client.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        server, _ = listener.accept()
        with server:
            for way in WAYS:
                assert way(*ends(server)) == os.geteuid(), way
