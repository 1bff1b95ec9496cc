"""The search for a directory server as a command, over loopback."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import typer
from typer.testing import CliRunner

from openmsmq.cli.enterprise.discover import DISCOVER_KEYS, discover
from openmsmq.model.identity import Guid
from openmsmq.protocol.discovery.server import DiscoveryFacts, answer_query
from openmsmq.runtime.directory.discovery import DiscoveryListener
from openmsmq.runtime.logs import EventLog
from tests.runtime.scripted_engine import free_port

ENTERPRISE = Guid(b"E" * 16)
SITE = Guid(b"S" * 16)
FACTS = DiscoveryFacts(ENTERPRISE, (SITE,), (ENTERPRISE,), ("HQ1", "HQ2"), True)
HERE = ("--network", "127.0.0.3/8", "--enterprise", str(ENTERPRISE))

app = typer.Typer()
app.command()(discover)


@contextmanager
def serving(port: int) -> Iterator[None]:
    """Run a directory server on 127.0.0.2 in a thread."""
    loop = asyncio.new_event_loop()
    listener = DiscoveryListener(
        ["127.0.0.2"], partial(answer_query, facts=FACTS), EventLog(level="error"), port=port
    )
    loop.call_soon(listener.open)
    opened = threading.Event()
    loop.call_soon(opened.set)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        assert opened.wait(10)
        yield
    finally:
        loop.call_soon_threadsafe(listener.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def port() -> int:
    return free_port("127.0.0.2", "127.0.0.3", "127.255.255.255")


def test_a_server_of_the_site_is_shown_as_facts_and_as_an_object(port):
    with serving(port):
        shown = run(*HERE, "--site", str(SITE), "--port", str(port))
        given = run(*HERE, "--site", f"{{{SITE}}}", "--port", str(port), "--json")
    assert (shown.exit_code, given.exit_code) == (0, 0)
    assert "directory server at 127.0.0.2" in shown.stdout
    assert "the one that was asked for" in shown.stdout
    found = json.loads(given.stdout)
    assert found.keys() == DISCOVER_KEYS.keys()
    assert found == {
        "address": "127.0.0.2",
        "same_site": True,
        "site": None,
        "servers": [],
        "connected_networks": [str(ENTERPRISE)],
        "own_address": "127.0.0.3",
        "broadcast": "127.255.255.255",
    }


def test_a_server_of_another_site_is_shown_with_its_site_and_its_neighbours(port):
    with serving(port):
        shown = run(*HERE, "--port", str(port), "--timeout", "0.1")
        given = run(*HERE, "--port", str(port), "--timeout", "0.1", "--json")
    assert (shown.exit_code, given.exit_code) == (0, 0)
    assert str(SITE) in shown.stdout
    assert "HQ1, HQ2" in shown.stdout
    found = json.loads(given.stdout)
    assert (found["site"], found["servers"]) == (str(SITE), ["HQ1", "HQ2"])


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_when_nobody_answers_the_sentence_says_where_it_was_asked(port, options):
    with serving(port):
        # The server is strict, and this is another enterprise.
        result = run("--network", "127.0.0.3/8", "--port", str(port), "--timeout", "0.1", *options)
    assert (result.exit_code, result.stdout) == (4, "")
    assert f"127.255.255.255 (from 127.0.0.3), port {port}" in result.stderr
    assert "MQ_ERROR_NO_DS" in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--site", "here", "'here' is not a GUID"),
        ("--enterprise", "{12}", "is not a GUID"),
        ("--network", "10.0.0.1", "is not ADDRESS/BITS"),
        ("--network", "10.0.0.1/33", "is not ADDRESS/BITS"),
        ("--network", "::1/64", "is not ADDRESS/BITS"),
        ("--timeout", "0", "--timeout"),
        ("--port", "65536", "--port"),
    ],
)
def test_what_cannot_be_used_is_named(option, value, reason):
    result = run(option, value)
    assert result.exit_code == 2
    assert reason in result.stderr
