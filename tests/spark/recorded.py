"""Queue managers whose whole traffic is recorded, as a capture between them would have it."""

from __future__ import annotations

import ipaddress

from openmsmq.capture.link_layers import ACK, FIN, PSH, RST, SYN, Endpoint, LinkType
from openmsmq.capture.pcapng import file_start, frame_block
from openmsmq.capture.recorder import Recorder, tcp_packet, udp_packet
from openmsmq.manager.outputs import SendDatagram
from openmsmq.model.limits import PING_PORT
from openmsmq.wire import packets
from tests.transfer.network import ALPHA, BETA, START_S, Network

SESSION_PORT = 1801
SEGMENT_BYTES = 1_400
START_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000
STEP_NS = 1_000
"""Frames that happen at the same virtual time follow each other by so much."""


def endpoint(address: str, port: int) -> Endpoint:
    return Endpoint(ipaddress.ip_address(address).packed, port)


CLIENT, SERVER = endpoint("10.0.0.1", 50_000), endpoint("10.0.0.2", SESSION_PORT)


def capture_file(frames: list[tuple[int, bytes]]) -> bytes:
    """Return the pcapng file of IP packets with their times."""
    return file_start(LinkType.RAW) + b"".join(frame_block(data, at) for at, data in frames)


def talk(*steps: tuple[str, object]) -> bytes:
    """Return a capture of a connection: what client and server say, second by second."""
    recorder = Recorder()
    file = [recorder.start(), recorder.opened(CLIENT, SERVER, START_NS)]
    at = START_NS
    for who, what in steps:
        at += SECOND_NS
        if who == "close":
            file.append(recorder.closed(CLIENT, SERVER, at))
            continue
        way = (CLIENT, SERVER) if who == "client" else (SERVER, CLIENT)
        data = what if isinstance(what, bytes) else packets.encode(what)
        file.append(recorder.sent(*way, data, at))
    return b"".join(file)


class RecordedNetwork(Network):
    """Records frames with their times; connections that are cut or lost end with a reset."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[tuple[int, bytes]] = []
        self.mute: set[str] = set()
        """Computers whose bytes get lost, and whose connections do not know it."""
        self._ways: dict[tuple[str, int], tuple[Endpoint, Endpoint]] = {}
        self._next: dict[tuple[Endpoint, Endpoint], int] = {}
        self._last_port = 50_000

    @property
    def file(self) -> bytes:
        """Return all that was recorded, as a pcapng file."""
        return capture_file(self.frames)

    def connect(self, source: str, session: int, address: str) -> None:
        super().connect(source, session, address)
        self._last_port += 1
        client = endpoint(source, self._last_port)
        server = endpoint(address, SESSION_PORT)
        self._next[client, server] = 7 * self._last_port
        self._next[server, client] = 11 * self._last_port
        self._segment(client, server, SYN)
        other = self._ends.get((source, session))
        if other is None:
            self._segment(server, client, RST | ACK)
            return
        self._segment(server, client, SYN | ACK)
        self._segment(client, server, ACK)
        self._ways[source, session] = client, server
        self._ways[other] = server, client

    def send(self, source: str, session: int, data: bytes) -> None:
        if source in self.mute:
            return
        super().send(source, session, data)
        if (source, session) in self._ends:
            for start in range(0, len(data), SEGMENT_BYTES):
                part = data[start : start + SEGMENT_BYTES]
                self._segment(*self._ways[source, session], ACK | PSH, part)

    def disconnect(self, source: str, session: int) -> None:
        if (source, session) in self._ends:
            way = self._ways[source, session]
            self._segment(*way, FIN | ACK)
            self._segment(*reversed(way), FIN | ACK)
        super().disconnect(source, session)

    def forget(self, address: str, *, silently: bool = False) -> list[tuple[str, int]]:
        for own in list(self._ends):
            if own[0] == address:
                self._segment(*self._ways[own], RST)
        return super().forget(address, silently=silently)

    def datagram(self, source: str, output: SendDatagram) -> None:
        super().datagram(source, output)
        port = PING_PORT if output.port is None else output.port
        own = PING_PORT if output.port is not None else 49_152
        packet = udp_packet(endpoint(source, own), endpoint(output.address, port), output.data)
        self._frame(packet)

    def _segment(
        self, source: Endpoint, destination: Endpoint, flags: int, data: bytes = b""
    ) -> None:
        sequence = self._next[source, destination]
        acknowledged = self._next[destination, source] if flags & ACK else 0
        self._next[source, destination] = sequence + len(data) + (flags & (SYN | FIN) != 0)
        self._frame(tcp_packet(source, destination, sequence, flags, data, acknowledged))

    def _frame(self, packet: bytes) -> None:
        at = (START_S * 1_000 + self.now.ticks_ms) * 1_000_000
        if self.frames and at <= self.frames[-1][0]:
            at = self.frames[-1][0] + STEP_NS
        self.frames.append((at, packet))


ORDERS, LEDGER = r"private$\orders", r"private$\ledger"


def trouble() -> RecordedNetwork:
    """Record what ALPHA sends to BETA while much goes wrong.

    ALPHA asks by a ping, is refused a connection, gets through and sends 2 messages, one of which
    BETA rejects; then 8 more are lost with their connection. BETA connects and gets all 8 again.
    Then BETA falls silent: the last message is never acknowledged, and ALPHA connects twice
    without an answer.
    """
    network = RecordedNetwork()
    alpha = network.manager("ALPHA", ALPHA, ask_ping=True)
    network.manager("BETA", BETA).with_queues(ORDERS, LEDGER)
    network.down.add(BETA)
    alpha.send(rf"DIRECT=TCP:{BETA}\{ORDERS}", b"first")
    network.run(8_000)
    network.down.clear()
    network.run(8_000)
    wishes = {"transactional": True, "journal_on_failure": True}
    alpha.send(rf"DIRECT=TCP:{BETA}\private$\absent", b"rejected", **wishes)
    network.run(50_000)
    alpha.send(rf"DIRECT=TCP:{BETA}\{ORDERS}", *(b"order %d" % n for n in range(3)))
    alpha.send(rf"DIRECT=TCP:{BETA}\{ORDERS}", b"express", recoverable=False)
    alpha.send(rf"DIRECT=TCP:{BETA}\{LEDGER}", *(bytes(1_000),) * 4, transactional=True)
    network.run()
    network.cut(BETA)
    network.run(100_000)
    network.mute.add(BETA)
    alpha.send(rf"DIRECT=TCP:{BETA}\{ORDERS}", b"never acknowledged")
    network.run(150_000)
    return network
