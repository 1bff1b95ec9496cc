"""Multicast beside OpenPGM, an independent implementation, on a network that loses a tenth.

OpenPGM and tshark come by `scripts/ensure-openpgm`; the peer is `openpgm/peer.c`.
"""

from __future__ import annotations

import random
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from openmsmq.protocol.pgm.outputs import Delivered, Group, Profile
from openmsmq.runtime.multicast.sockets import PgmSockets
from openmsmq.runtime.multicast.transport import PgmTransport
from tests.runtime.computers import wait_for
from tests.runtime.namespaces import Host, required_laboratory

GROUP: Final = Group("239.1.1.1", 8_001)
HERE, THERE = "10.97.9.1", "10.97.9.2"
COUNT: Final = 120
LONGEST: Final = 9_000
LOSES: Final = (
    "table ip lossy { chain arriving { type filter hook input priority 0; "
    "ip protocol 113 numgen random mod 100 < 10 drop ; }; }"
)
SOURCE: Final = Path(__file__).parent / "openpgm" / "peer.c"


def payload(number: int) -> bytes:
    """As the peer makes them."""
    size = 8 + number * 997 % LONGEST
    return b"%08d" % number + bytes([ord("a") + number % 26]) * (size - 8)


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("openpgm") / "peer"
    line = ["cc", "-Wall", "-Werror", "-I/usr/include/pgm-5.3", "-o", str(made), str(SOURCE)]
    subprocess.run([*line, "-lpgm"], check=True)
    return str(made)


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with required_laboratory("lan") as lab:
        both = lab.host("ours", lan=HERE), lab.host("theirs", lan=THERE)
        for host in both:
            assert host.command("nft", LOSES).returncode == 0
        yield both


class Ours:
    """Our transport on a host, and what it has heard."""

    def __init__(self, host: Host) -> None:
        self.heard: list[Delivered] = []
        self._host = host
        self.transport = host.do(self._make)

    def _make(self) -> PgmTransport:
        made = PgmTransport(
            lambda: PgmSockets("lan", 16),
            b"ourGSI",
            random.Random(1),
            self.heard.append,
            Profile(rate_bytes_per_s=1_000_000),
        )
        made.listen(GROUP)
        return made

    def send(self, payloads: list[bytes]) -> None:
        for each in payloads:
            self._host.do(partial(self.transport.send, GROUP, each))

    def close(self) -> None:
        self._host.do(self.transport.close)


def start(host: Host, *words: str) -> subprocess.Popen[str]:
    line = ["ip", "netns", "exec", host.name, *words]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_nothing_that_openpgm_sends_is_missing(hosts: tuple[Host, Host], peer: str) -> None:
    here, there = hosts
    ours = Ours(here)
    place = (THERE, GROUP.address, str(GROUP.port))
    sender = start(there, peer, "send", *place, str(COUNT), str(LONGEST))
    try:
        wait_for(lambda: len(ours.heard) >= COUNT)
        assert [each.payload for each in ours.heard] == [payload(each) for each in range(COUNT)]
        assert {each.address for each in ours.heard} == {THERE}
        receiver = ours.transport.receiver
        assert receiver.lost_count == 0
        # Some were lost, or the test would show nothing.
        assert receiver.asked_count > 0
        counts = ours.transport.counts
        assert (counts["asked"], counts["lost"], counts["sent"]) == (receiver.asked_count, 0, 0)
    finally:
        sender.kill()
        sender.communicate()
        ours.close()


def test_openpgm_misses_nothing_that_we_send_and_tshark_understands_it(
    hosts: tuple[Host, Host], peer: str, tmp_path: Path
) -> None:
    here, there = hosts
    capture = tmp_path / "packets.pcapng"
    looking = start(here, "tshark", "-i", "lan", "-f", "ip proto 113", "-w", str(capture))
    assert looking.stderr is not None
    while "Capturing" not in looking.stderr.readline():
        assert looking.poll() is None
    drained = threading.Thread(target=looking.stderr.read, daemon=True)
    drained.start()
    receiver = start(there, peer, "receive", THERE, GROUP.address, str(GROUP.port), "60")
    ours = Ours(here)
    try:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        ours.send([payload(each) for each in range(COUNT)])
        lines = [receiver.stdout.readline().split() for _ in range(COUNT)]
        expected = [[f"{each:08d}", str(len(payload(each)))] for each in range(COUNT)]
        assert lines == expected
        (source,) = ours.transport.sources
        assert source.repaired_count > 0
        counts = ours.transport.counts
        assert (counts["sent"], counts["repaired"]) == (source.sent_count, source.repaired_count)
    finally:
        receiver.kill()
        receiver.communicate()
        ours.close()
        looking.terminate()
        looking.wait()
        drained.join()
        for pipe in (looking.stdout, looking.stderr):
            assert pipe is not None
            pipe.close()
    read = ["tshark", "-r", str(capture), "-o", "pgm.check_checksum:TRUE", "-T", "fields"]
    fields = ["-e", "ip.src", "-e", "pgm.hdr.type", "-e", "_ws.expert.message"]
    shown = subprocess.run([*read, *fields], check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in shown.splitlines() if line.startswith(HERE)]
    # SPM, ODATA, RDATA and NCF are ours.
    assert {int(row[1], 0) for row in rows} >= {0x00, 0x04, 0x05, 0x0A}
    assert {row[2] for row in rows if len(row) > 2} <= {""}
