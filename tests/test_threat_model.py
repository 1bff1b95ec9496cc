"""The threat model names modules and tests that exist, and limits as they are."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from pathlib import Path

import pytest

from openmsmq.model.limits import SESSION_HANDSHAKE_MS
from openmsmq.protocol.session import PACKET_MS, PACKET_RATE_MIN_BYTES_PER_S
from openmsmq.runtime import limits
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.sessions.network import transfer_bounds

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/internals/threat-model.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
PLACES = sorted(set(re.findall(r"`(tests/[\w/]+(?:\.py)?)`", PAGE)))
PACKAGES = "api|capture|console|directory|manager|protocol|runtime|security|storage|wire"
MODULES = sorted(set(re.findall(rf"`((?:{PACKAGES})(?:\.\w+)+)`", PAGE)))
OPTIONS = ServerConfig(data="none")
BOUNDS = transfer_bounds(OPTIONS)
NUMBERS = {
    "100 (`transfer_connections_per_peer_max`)": OPTIONS.transfer_connections_per_peer_max,
    "1,000 (`transfer_connections_max`)": OPTIONS.transfer_connections_max,
    "| Handshakes under way | 50 | 200 |": BOUNDS.half_open_per_peer_max,
    "| 20, 400 at once": BOUNDS.connects_per_s,
    "| 64 MiB | 256 MiB |": limits.PEER_BUFFERED_MAX_BYTES >> 20,
    "| 24 MiB for a connection": limits.SESSION_WRITE_BUFFER_MAX_BYTES >> 20,
    "| 60 s |": SESSION_HANDSHAKE_MS // 1000,
    "| 30 s, and 16 KiB": PACKET_MS // 1000,
    "| Pings in a second | 20 | 500 |": BOUNDS.datagrams_per_s,
    "| 4,096 |": BOUNDS.addresses_max,
}


@functools.cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def test_the_page_names_tests() -> None:
    assert len(TESTS) > 60


@pytest.mark.parametrize(("path", "name"), TESTS, ids=[name for _, name in TESTS])
def test_a_test_that_the_page_names_exists(path: str, name: str) -> None:
    assert name in functions(path)


@pytest.mark.parametrize("place", PLACES)
def test_a_file_of_tests_that_the_page_names_exists(place: str) -> None:
    assert (ROOT / place).exists()


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_the_page_names_exists(module: str) -> None:
    assert importlib.util.find_spec(f"openmsmq.{module}") is not None


@pytest.mark.parametrize("words", NUMBERS)
def test_a_limit_on_the_page_is_the_one_in_the_code(words: str) -> None:
    assert words in PAGE
    numbers = [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", words)]
    assert NUMBERS[words] in numbers


def test_further_limits_on_the_page_are_those_in_the_code() -> None:
    assert BOUNDS.half_open_max == 200
    assert BOUNDS.connects_burst == BOUNDS.connects_all_burst == 400
    assert BOUNDS.connects_all_per_s == 100
    assert BOUNDS.unfinished_cost == 2
    assert limits.CONNECTIONS_RESERVED_SHARE == 4
    assert limits.PEERS_BUFFERED_MAX_BYTES == 256 << 20
    assert BOUNDS.datagrams_all_per_s == 500
    assert limits.SESSION_UNREAD_MS == 60_000
    assert BOUNDS.known_max == 1000
    assert PACKET_RATE_MIN_BYTES_PER_S == 16 << 10
