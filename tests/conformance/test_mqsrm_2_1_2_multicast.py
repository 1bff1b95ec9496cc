"""Messages of multicast: posts of SOAP in packets of PGM in packets of IP. [MQSRM 2.1.2]"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.outputs import SendMulticast
from openmsmq.model.queue import AccessMode
from tests.conformance.marks import shows
from tests.golden import golden_request
from tests.runtime.computers import PROGRAM, Computer, environment, wait_for
from tests.runtime.namespaces import Host, required_laboratory
from tests.strategies.messages import Draft
from tests.unit.manager.office import Office

GROUP: Final = "234.1.1.1:8001"
OTHER_GROUP: Final = "234.1.1.1:8002"
TICKER: Final = r"private$\ticker"
OTHER: Final = r"private$\other"
EXAMPLE: Final = golden_request("mqsrm-4.5-multicast")
BODY: Final = "ardenwhite".encode("utf-16-le")
SOAP_1_1: Final = b'<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/"'


@pytest.fixture
def office() -> Office:
    made = Office()
    made.driver.manager.multicast_problem("", made.driver.now)
    made.ok(api.CreateQueue(TICKER, multicast_address=GROUP))
    made.ok(api.CreateQueue(OTHER, multicast_address=OTHER_GROUP))
    return made


def comes(office: Office, payload: bytes, group: str = GROUP) -> None:
    """Let a payload come to an address."""
    office.driver.manager.multicast_received("10.0.0.9", group, payload, office.driver.now)
    office.driver.pump()


@shows("MQSRM-2.2.4.2", 5)
@pytest.mark.parametrize("group", [GROUP, "239.255.255.255:65535"])
def test_the_queue_is_named_by_address_and_port(office: Office, group: str) -> None:
    handle = office.open(f"MULTICAST={group}", AccessMode.SEND)
    office.driver.request(office.app, api.Send(handle, [Draft().packet()]))
    (sent,) = [each for each in office.driver.node.take() if isinstance(each, SendMulticast)]
    assert sent.group == group
    assert sent.payload.count(b"<to>") == 1
    assert f"<to>MSMQ:MULTICAST={group}</to>".encode() in sent.payload


@shows("MQSRM-3.1.5.1.1", 15)
def test_what_stands_behind_the_prefix_is_the_name_of_the_queue(office: Office) -> None:
    comes(office, EXAMPLE)
    assert (office.bodies(TICKER), office.bodies(OTHER)) == ([BODY], [])
    # It is the envelope that names the queue: what comes elsewhere is for nobody there.
    comes(office, EXAMPLE, OTHER_GROUP)
    assert office.bodies(OTHER) == []
    comes(office, EXAMPLE.replace(b"=234.1.1.1:8001<", b"=234.1.1.1:8002<"), OTHER_GROUP)
    assert (len(office.bodies(TICKER)), office.bodies(OTHER)) == (1, [BODY])
    # Without the prefix it is another kind of name.
    comes(office, EXAMPLE.replace(b"<to>MSMQ:", b"<to>"))
    assert len(office.bodies(TICKER)) == 1


@shows("MQSRM-3.1.5.1.3", 2)
def test_what_no_queue_has_the_name_of_is_disregarded(office: Office) -> None:
    office.ok(api.DeleteQueue(TICKER))
    before = len(office.driver.node.outputs)
    comes(office, EXAMPLE)
    assert len(office.driver.node.outputs) == before, "nobody is told anything"
    for name in (OTHER, r".\system$;deadletter"):
        assert office.bodies(name) == []
    # A queue that gets the name later does not get the message.
    office.ok(api.CreateQueue(TICKER, multicast_address=GROUP))
    assert office.bodies(TICKER) == []
    comes(office, EXAMPLE)
    assert office.bodies(TICKER) == [BODY]


# On a network: the other side is a raw socket, which knows no more of PGM than is written here.

HERE, THERE = "10.97.11.1", "10.97.11.2"
PGM: Final = 113
ODATA: Final = 0x04
ALIVE: Final = EXAMPLE.replace(b"<TTrq>20070612T023719", b"<TTrq>20380119T031407")


def checksum(data: bytes) -> int:
    """The checksum of the Internet. [RFC 1071]"""
    even = data + b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(even[at : at + 2], "big") for at in range(0, len(even), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def odata(number: int, payload: bytes) -> bytes:
    """Put a payload into a packet of data. [RFC 3208 8.2]"""
    port, to = 5_000, 8_001
    head = struct.pack(">HHBBH6sH", port, to, ODATA, 0, 0, b"peer.1", len(payload))
    packet = head + struct.pack(">II", number, 1) + payload
    return packet[:6] + struct.pack(">H", checksum(packet)) + packet[8:]


class Peer:
    """A raw socket on a host that sends to the group, and hears it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._socket = host.do(self._open)

    def _open(self) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_RAW, PGM)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(THERE))
        joined = socket.inet_aton("234.1.1.1") + socket.inet_aton(THERE)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
        made.settimeout(30)
        return made

    def send(self, packet: bytes) -> None:
        self._socket.sendto(packet, ("234.1.1.1", 0))

    def hears_data(self) -> bytes:
        """Wait for data of the other host; gives what the packet carries."""
        for _ in range(1_000):
            found, (origin, _) = self._socket.recvfrom(65_536)
            assert found[9] == PGM
            packet = found[(found[0] & 0x0F) * 4 :]
            if origin == HERE and packet[4] == ODATA:
                assert packet[5] == 0, "one packet, without options"
                return packet[24:]
        raise AssertionError("no data in a thousand packets")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def network(tmp_path: Path) -> Iterator[tuple[Computer, Peer]]:
    """A queue manager, and a peer on another host."""
    with required_laboratory("lan") as lab:
        ours, theirs = lab.host("ours", lan=HERE), lab.host("theirs", lan=THERE)
        computer = Computer(
            tmp_path, "ALPHA", "127.0.0.1", 1801, tables='[multicast]\ninterface = "lan"\n'
        )
        computer.prefix = ("ip", "netns", "exec", ours.name)
        peer = Peer(theirs)
        try:
            computer.start()
            yield computer, peer
        finally:
            computer.end()
            peer.close()


def done(computer: Computer, *words: str) -> str:
    line = [*computer.prefix, *PROGRAM, "--qm", computer.qm, *words]
    return subprocess.run(
        line, check=True, stdout=subprocess.PIPE, text=True, env=environment(), timeout=60
    ).stdout


@shows("MQSRM-2.1.2", 1, 2)
def test_messages_of_soap_go_and_come_in_packets_of_pgm(network: tuple[Computer, Peer]) -> None:
    computer, peer = network
    done(computer, "queue", "create", TICKER, "--multicast", GROUP)
    wait_for(lambda: "door=multicast" in computer.log)
    peer.send(odata(1, ALIVE))
    received = json.loads(done(computer, "receive", TICKER, "--timeout", "20", "--json"))
    assert (received["text"], received["label"]) == ("ardenwhite", "mqsender label")

    done(computer, "send", f"MULTICAST={GROUP}", "--body", "from here", "--label", "price")
    post = peer.hears_data()
    head, _, content = post.partition(b"\r\n\r\n")
    assert head.startswith(f"POST {GROUP} HTTP/1.1\r\n".encode())
    assert b'SOAPAction: "MSMQMessage"' in head
    assert content.count(SOAP_1_1) == 1
    assert b"<action>MSMQ:price</action>" in content
    assert f"<to>MSMQ:MULTICAST={GROUP}</to>".encode() in content
    assert "from here".encode("utf-16-le") in content
