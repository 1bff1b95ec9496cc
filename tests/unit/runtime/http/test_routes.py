"""Who has made a request that a proxy has brought: only proxies that are trusted are asked."""

from __future__ import annotations

import pytest

from openmsmq.runtime.http.heads import Head
from openmsmq.runtime.http.routes import Proxies, Visitor
from openmsmq.runtime.limits import HTTP_PROXIES_MAX_COUNT

TRUSTED = ("127.0.0.1", "10.0.0.0/8", "fd00::/8")
CLIENT = "203.0.113.9"


def client(told: str | None, address: str = "127.0.0.1") -> str:
    headers = {} if told is None else {"x-forwarded-for": told}
    visitor = Visitor(f"{address}:4711", address)
    return Proxies(TRUSTED).client(Head(1, "GET", "/", headers, None), visitor).address


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (None, "127.0.0.1"),
        (CLIENT, CLIENT),
        (f" {CLIENT} ", CLIENT),
        (f"{CLIENT}, 10.1.2.3", CLIENT),
        (f"{CLIENT}, 10.1.2.3, fd00::1", CLIENT),
        (f"{CLIENT}:50123", CLIENT),
        ("[2001:db8::1]:50123", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:0DB8:0::1", "2001:db8::1"),
        # As a socket for both families has it.
        (f"::ffff:{CLIENT}", CLIENT),
        # Only proxies: the first of them, as far as anybody knows.
        ("10.9.9.9, 10.1.2.3", "10.9.9.9"),
    ],
)
def test_the_last_address_that_is_no_proxys_is_the_client(told: str | None, found: str) -> None:
    assert client(told) == found


@pytest.mark.parametrize("lie", ["198.51.100.1", "10.0.0.1", "127.0.0.1", "unknown", "", ",,,"])
def test_what_the_client_itself_has_written_counts_for_nothing(lie: str) -> None:
    assert client(f"{lie}, {CLIENT}") == CLIENT
    assert client(f"{lie}, {CLIENT}, 10.1.2.3") == CLIENT


@pytest.mark.parametrize("address", [CLIENT, "192.168.1.1", "::1"])
def test_whoever_is_no_trusted_proxy_is_himself(address: str) -> None:
    assert client("198.51.100.1", address) == address
    assert client("127.0.0.1", address) == address


def test_without_trusted_proxies_nobody_is_believed() -> None:
    visitor = Visitor("127.0.0.1:4711", "127.0.0.1")
    head = Head(1, "GET", "/", {"x-forwarded-for": CLIENT}, None)
    assert Proxies(()).client(head, visitor) is visitor


@pytest.mark.parametrize(
    "told",
    [
        "unknown",
        "_hidden",
        "",
        f"{CLIENT}, unknown",
        f"{CLIENT}, ",
        "203.0.113.9/32",
        "203.0.113.999",
        "fe80::1%eth0",
        "0x7f.1",
        "1" * 5_000,
    ],
)
def test_what_is_no_address_is_the_proxy_that_says_it(told: str) -> None:
    assert client(told) == "127.0.0.1"
    assert client(f"{told}, 10.1.2.3") == "10.1.2.3"


def test_no_more_proxies_are_looked_at_than_the_limit() -> None:
    last = HTTP_PROXIES_MAX_COUNT
    chain = [f"10.0.0.{number}" for number in range(last)]
    assert client(", ".join([CLIENT, *chain[1:]])) == CLIENT
    assert client(", ".join([CLIENT, *chain])) == "10.0.0.0"
    assert client(", ".join([CLIENT] * 3_000)) == CLIENT


def test_the_log_has_both() -> None:
    visitor = Visitor("127.0.0.1:4711", "127.0.0.1", is_secure=True, certificate=b"shown")
    head = Head(1, "GET", "/", {"x-forwarded-for": CLIENT}, None)
    found = Proxies(TRUSTED).client(head, visitor)
    assert found == Visitor(
        f"{CLIENT} through 127.0.0.1:4711", CLIENT, is_secure=True, certificate=b"shown"
    )
