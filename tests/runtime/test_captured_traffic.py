"""What tshark captures between two queue managers, over HTTP and by multicast, is read again."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.runtime.computers import PROGRAM, Computer, environment, wait_for
from tests.runtime.namespaces import required_laboratory

GROUP: Final = "239.1.1.1:8001"
COUNT: Final = 25
LONG: Final = "a long price " * 300
PLACES: Final = {"ALPHA": "10.97.7.1", "BETA": "10.97.7.2"}
SENDER: Final = """
import sys, time, openmsmq
url, group, count, long = sys.argv[2:]
with openmsmq.connect(sys.argv[1]) as manager:
    with manager.transaction() as transaction:
        for number in range(int(count)):
            manager.queue(url).send(f"order {number}", label="order", transaction=transaction)
    for number in range(int(count)):
        manager.queue("MULTICAST=" + group).send(f"{number} {long}", label="price")
    # The receipt of the stream comes back over HTTP.
    while any(queue.message_count for queue in manager.outgoing()):
        time.sleep(0.1)
"""
LOSES: Final = (
    "table ip lossy { chain arriving { type filter hook input priority 0; "
    "ip protocol 113 numgen random mod 100 < 10 drop ; }; }"
)


@pytest.fixture(scope="module")
def computers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Computer]]:
    folder = tmp_path_factory.mktemp("captured")
    with required_laboratory("lan") as lab, ExitStack() as started:
        found = {}
        for name, address in PLACES.items():
            host = lab.host(name.lower(), lan=address)
            if name == "BETA":
                assert host.command("nft", LOSES).returncode == 0
            tables = (
                f'[http]\nenabled = true\naddress = "{address}"\nprograms = false\nsends = true\n'
                f"queues = ['private$\\*']\nurl = 'http://{address}:8080'\n"
                '[multicast]\ninterface = "lan"\nrate_kb_s = 700\n'
            )
            computer = Computer(folder, name, "127.0.0.1", 1801, tables=tables)
            computer.prefix = ("ip", "netns", "exec", host.name)
            found[name] = computer
            computer.launch()
            started.callback(computer.end)
        for computer in found.values():
            computer.ready()
        yield found


def run(computer: Computer, *words: str, status: int = 0) -> str:
    line = [*computer.prefix, *PROGRAM, *words]
    found = subprocess.run(
        line, check=False, capture_output=True, text=True, env=environment(), timeout=60
    )
    assert found.returncode == status, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def capture(computers: dict[str, Computer], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Send orders by HTTP and prices by multicast, with tshark at the sender's network card."""
    alpha, beta = computers["ALPHA"], computers["BETA"]
    file = tmp_path_factory.mktemp("files") / "talk.pcapng"
    run(beta, "--qm", beta.qm, "queue", "create", r"private$\orders", "--transactional")
    run(beta, "--qm", beta.qm, "queue", "create", r"private$\ticker", "--multicast", GROUP)
    wait_for(lambda: "door=multicast" in beta.log)
    line = [*alpha.prefix, "tshark", "-i", "lan", "-f", "ip proto 113 or tcp port 8080"]
    looking = subprocess.Popen([*line, "-w", str(file)], stderr=subprocess.PIPE, text=True)
    assert looking.stderr is not None
    while "Capturing" not in looking.stderr.readline():
        assert looking.poll() is None
    drained = threading.Thread(target=looking.stderr.read, daemon=True)
    drained.start()
    url = f"DIRECT=HTTP://{PLACES['BETA']}:8080/msmq/private$/orders"
    program = [*alpha.prefix, sys.executable, "-c", SENDER, alpha.qm, url, GROUP, str(COUNT), LONG]
    try:
        subprocess.run(program, check=True, env=environment(), timeout=60)
        for queue in ("orders", "ticker"):
            read = partial(run, beta, "--qm", beta.qm, "receive", rf"private$\{queue}")
            assert read("--count", str(COUNT), "--timeout", "60", "--json").count("\n") == COUNT
    finally:
        looking.terminate()
        looking.wait()
        drained.join()
        looking.stderr.close()
    return file


def decoded(computer: Computer, file: Path) -> list[dict[str, Any]]:
    text = run(computer, "packet", "decode", "--json", str(file))
    return [json.loads(line) for line in text.splitlines()]


def test_every_message_is_read_once_and_nothing_is_wrong(
    computers: dict[str, Computer], capture: Path
) -> None:
    records = decoded(computers["ALPHA"], capture)
    assert [record for record in records if "problem" in record] == []
    posts = [record for record in records if record["packet"] == "Post"]
    prices = [record for record in posts if "connection" not in record]
    assert len(prices) == COUNT
    assert {record["destination"] for record in prices} == {GROUP}
    assert all(f"to MSMQ:MULTICAST={GROUP}" in record["summary"] for record in prices)
    orders = [record for record in posts if " of a stream, body " in record["summary"]]
    places = {int(record["summary"].partition(", number ")[2].split()[0]) for record in orders}
    assert places == set(range(1, COUNT + 1))
    answers = [record for record in records if record["packet"] == "HttpAnswer"]
    assert len(answers) == len(posts) - len(prices)
    assert {record["summary"] for record in answers} == {"HTTP/1.1 200 OK, 0 bytes"}
    # Some were lost on their way to the receiver, and were repaired.
    packets = [record["summary"] for record in records if record["packet"] == "PgmPacket"]
    assert any(summary.startswith("RDATA") for summary in packets)


def test_tshark_counts_the_same(computers: dict[str, Computer], capture: Path) -> None:
    records = decoded(computers["ALPHA"], capture)
    line = ["tshark", "-r", str(capture), "-d", "tcp.port==8080,http", "-T", "fields"]

    def count(shown: str) -> int:
        found = subprocess.run(
            [*line, "-Y", shown, "-e", "frame.number"], check=True, capture_output=True, text=True
        )
        return len(found.stdout.splitlines())

    def ours(name: str, start: str = "") -> int:
        return sum(
            record["packet"] == name
            and "problem" not in record
            and record["summary"].startswith(start)
            for record in records
        )

    assert ours("PgmPacket") == count("pgm")
    assert ours("PgmPacket", "ODATA") == count("pgm.hdr.type == 4")
    assert ours("PgmPacket", "RDATA") == count("pgm.hdr.type == 5")
    assert ours("PgmPacket", "NAK") == count("pgm.hdr.type == 8")
    assert ours("HttpAnswer") > 0
