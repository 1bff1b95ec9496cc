"""Stock ticker, step by step: one sender, and several displays by multicast. [MQOD 3.8]

Each display point has a queue with the same multicast address. What the back end sends there comes
to all of them, although the network loses a tenth of all packets.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.runtime.computers import PROGRAM, Computer, environment, wait_for
from tests.runtime.namespaces import required_laboratory

ADDRESS: Final = "239.1.1.1:8001"
PRICES: Final = [f"stock {number}: {100 + number}.50" for number in range(40)]
SENDER: Final = """
import sys, openmsmq
with openmsmq.connect(sys.argv[1]) as manager:
    for price in sys.argv[3:]:
        manager.queue("MULTICAST=" + sys.argv[2]).send(price, label="price")
"""
LOSES: Final = (
    "table ip lossy { chain arriving { type filter hook input priority 0; "
    "ip protocol 113 numgen random mod 100 < 10 drop ; }; }"
)


def command(computer: Computer, *words: str) -> subprocess.CompletedProcess[str]:
    line = [*computer.prefix, *PROGRAM, "--qm", computer.qm, *words]
    return subprocess.run(
        line, check=False, capture_output=True, text=True, env=environment(), timeout=60
    )


def done(computer: Computer, *words: str) -> str:
    found = command(computer, *words)
    assert found.returncode == 0, found.stderr
    return found.stdout


def listens(display: Computer) -> bool:
    return "door=multicast" in display.log


@pytest.fixture
def exchange(tmp_path: Path) -> Iterator[list[Computer]]:
    """A back end and two display points on one network that loses a tenth of all packets."""
    with required_laboratory("lan") as lab, ExitStack() as started:
        computers = []
        for number, name in enumerate(("BACKEND", "DISPLAY1", "DISPLAY2"), 1):
            host = lab.host(name.lower(), lan=f"10.97.8.{number}")
            assert host.command("nft", LOSES).returncode == 0
            tables = '[multicast]\ninterface = "lan"\nrate_kb_s = 700\n'
            # Loopback is each one's own: only multicast goes from one to the other.
            computer = Computer(tmp_path, name, "127.0.0.1", 1801, tables=tables)
            computer.prefix = ("ip", "netns", "exec", host.name)
            computers.append(computer)
            computer.launch()
            started.callback(computer.end)
        for computer in computers:
            computer.ready()
        yield computers


@pytest.mark.spec("MQOD-3.8-01", "MQSRM-3.1.7.9-03")
def test_every_display_shows_every_price_once_and_in_order(exchange: list[Computer]) -> None:
    backend, *displays = exchange
    # Initially: a queue on each display point, with the same multicast address.
    for display in displays:
        done(display, "queue", "create", r"private$\ticker", "--multicast", ADDRESS)
        wait_for(partial(listens, display))
    # Two queues of one computer may share an address.
    done(displays[0], "queue", "create", r"private$\archive", "--multicast", ADDRESS)
    shown = json.loads(done(displays[0], "queue", "show", r"private$\ticker", "--json"))
    assert shown["multicast_address"] == ADDRESS
    # 1-2: the back-end application sends prices, and its queue manager multicasts them.
    program = [*backend.prefix, sys.executable, "-c", SENDER, backend.qm, ADDRESS, *PRICES]
    subprocess.run(program, check=True, env=environment(), timeout=60)
    # 3-4: each display receives and shows them.
    for display, queue in (
        (displays[0], "ticker"),
        (displays[0], "archive"),
        (displays[1], "ticker"),
    ):
        read = done(
            display, "receive", rf"private$\{queue}", "--count", "40", "--timeout", "30", "--json"
        )
        messages = [json.loads(line) for line in read.splitlines()]
        assert [message["text"] for message in messages] == PRICES
        assert {message["label"] for message in messages} == {"price"}
        # In the end everything is as in the beginning: the queues are there, and empty.
        left = json.loads(done(display, "queue", "show", rf"private$\{queue}", "--json"))
        assert (left["multicast_address"], left["message_count"]) == (ADDRESS, 0)


def test_no_transaction_and_no_reader_reaches_a_multicast_address(
    exchange: list[Computer],
) -> None:
    backend = exchange[0]
    refused = command(backend, "send", f"MULTICAST={ADDRESS}", "--body", "x", "--transactional")
    assert refused.returncode == 1
    assert "which no transaction reaches" in refused.stderr
    refused = command(backend, "receive", f"MULTICAST={ADDRESS}")
    assert "is a multicast address" in refused.stderr
    refused = command(
        backend, "queue", "create", r"private$\q", "--transactional", "--multicast", ADDRESS
    )
    assert "no transactional message comes to a multicast address" in refused.stderr
    refused = command(backend, "queue", "create", r"private$\q", "--multicast", "10.0.0.1:8001")
    assert "give an address from 224.0.0.0" in refused.stderr
