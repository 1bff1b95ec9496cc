"""Peers that send nonsense, lie, stall, flood or fall silent harm nobody but themselves."""

from __future__ import annotations

import contextlib
import itertools
import random
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from openmsmq.client.verbs.transactions import SINGLE_MESSAGE
from openmsmq.model.identity import NIL_GUID, Guid, SequenceId
from openmsmq.model.message import MessageClass
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers.base import LAYOUT, SIGNATURE, VERSION
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
    decode,
    encode,
)
from tests.runtime.computers import (
    Computer,
    explanations,
    neighbours,
    running,
    wait_for,
    waiting_count,
)
from tests.transfer.letters import direct, final_ack, letter, order_ack, session_ack

ORDERS, LEDGER = r"private$\orders", r"private$\ledger"
STRANGE = "127.0.0.9"
"""Where the hostile peers are."""

RELAY = "127.0.0.8"
"""Where somebody passes on what is meant for one of the honest computers."""

STRANGER = Guid(b"a stranger here ")
HONEST = Guid(b"a known receiver")
WITHIN_S = 90.0
NUMBERS = itertools.count(1)

ESTABLISH = encode(EstablishConnection(EstablishHeader(STRANGER, NIL_GUID)))
PARAMETERS = encode(ConnectionParameters(ParametersHeader(500, 20_000, 64)))


class Pair:
    """Two honest computers."""

    def __init__(self, alpha: Computer, beta: Computer) -> None:
        self.alpha = alpha
        self.beta = beta
        self.managers = {computer: computer.connect() for computer in (alpha, beta)}
        for manager in self.managers.values():
            manager.create_queue(ORDERS)
            manager.create_queue(LEDGER, transactional=True)

    def move_messages(self) -> None:
        """See that messages of two kinds go both ways."""
        for source, target in ((self.alpha, self.beta), (self.beta, self.alpha)):
            bodies = [b"%d" % next(NUMBERS) for _ in range(5)]
            manager = self.managers[source]
            manager.queue(target.queue(ORDERS)).send_many(bodies, recoverable=True)
            for body in bodies:
                manager.queue(target.queue(LEDGER)).send(body, transaction=SINGLE_MESSAGE)
            for path in (ORDERS, LEDGER):
                queue = self.managers[target].queue(path)
                assert [queue.receive(timeout=WITHIN_S).body for _ in bodies] == bodies


class Stranger:
    """Somebody who connects to a computer, and does there what a test says."""

    def __init__(self, target: Computer, accepted: socket.socket | None = None) -> None:
        self.target = target
        self.socket = accepted or socket.create_connection(
            (target.address, target.session_port), source_address=(STRANGE, 0)
        )
        self.socket.settimeout(WITHIN_S)
        self._unread = bytearray()

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *data: bytes) -> None:
        self.socket.sendall(b"".join(data))

    def hear(self) -> Packet:
        """Wait for the next packet."""
        while (packet := next(take_packets(self._unread), None)) is None:
            data = self.socket.recv(1 << 16)
            assert data, "the session was cut"
            self._unread += data
        return decode(packet)

    def open(self) -> None:
        """Open a session in the way that is expected."""
        self.send(ESTABLISH)
        assert isinstance(self.hear(), EstablishConnection)
        self.send(PARAMETERS)
        assert isinstance(self.hear(), ConnectionParameters)

    def answer(self, identifier: Guid) -> UserMessage:
        """Open the session that the other end has asked for; give the first message there."""
        asked = self.hear()
        assert isinstance(asked, EstablishConnection)
        answer = EstablishHeader(asked.establish.client, identifier, asked.establish.ticks_ms)
        self.send(encode(EstablishConnection(answer)))
        assert isinstance(self.hear(), ConnectionParameters)
        self.send(PARAMETERS)
        message = self.hear()
        assert isinstance(message, UserMessage)
        return message

    def is_cut_off(self) -> bool:
        """Wait for the end of the connection."""
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(1 << 16):
                pass
        return True

    def message(self, path: str, body: bytes = b"body") -> bytes:
        return encode(letter(STRANGER, next(NUMBERS), direct(self.target.address, path), body))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    alpha, beta = neighbours(tmp_path_factory.mktemp("pair"), "ALPHA", "BETA")
    beta.options = ("--also-known-as", RELAY)
    with running(alpha, beta):
        pair = Pair(alpha, beta)
        yield pair
        for manager in pair.managers.values():
            manager.close()


def base_header(size: int, flags: int = 0x0008) -> bytes:
    return LAYOUT.pack(VERSION, 0, flags, SIGNATURE, size, 0)


def broken(packet: bytes) -> bytes:
    """A message whose properties claim a body that ends far behind the packet."""
    message = decode(packet)
    assert isinstance(message, UserMessage)
    size = len(message.properties.body).to_bytes(4, "little")
    at = packet.index(size + size)
    return packet[:at] + b"\xff\xff\xff\x7f" + packet[at + 4 :]


WRONG: dict[str, Callable[[Stranger], object]] = {
    "sends noise": lambda it: it.send(random.Random(1).randbytes(50_000)),
    "takes it for a web server": lambda it: it.send(b"GET / HTTP/1.1\r\nHost: beta\r\n\r\n"),
    "claims a packet of 4 GiB": lambda it: it.send(base_header(0xFFFF_FFFF)),
    "claims a packet shorter than its header": lambda it: it.send(base_header(15)),
    "claims a long first packet": lambda it: it.send(base_header(4_000_000), bytes(100_000)),
    "begins with a message": lambda it: it.send(it.message(ORDERS)),
    "asks for somebody else": lambda it: it.send(
        encode(EstablishConnection(EstablishHeader(STRANGER, STRANGER)))
    ),
    "opens an open session": lambda it: (it.open(), it.send(ESTABLISH)),
    "acknowledges what was never sent": lambda it: (
        it.open(),
        it.send(encode(session_ack(1000, 1, 1))),
    ),
    "sends noise in the middle": lambda it: (
        it.open(),
        it.send(it.message(ORDERS)[:-40], b"?" * 99),
    ),
    "sends broken messages": lambda it: (
        it.open(),
        it.send(*(broken(it.message(ORDERS, b"a body to break")) for _ in range(10))),
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_one_who_breaks_the_rules_is_cut_off(pair, what):
    with Stranger(pair.beta) as stranger:
        WRONG[what](stranger)
        assert stranger.is_cut_off()
    pair.move_messages()
    assert pair.managers[pair.beta].queue(ORDERS).count() == 0


STALLED: dict[str, Callable[[Stranger], object]] = {
    "says nothing": lambda it: it,
    "says half a word": lambda it: it.send(ESTABLISH[:30]),
    "stops in the handshake": lambda it: it.send(ESTABLISH),
    "stops after the handshake": lambda it: it.open(),
    "stops in a message": lambda it: (it.open(), it.send(base_header(4_000_000, 3), bytes(99_999))),
}


@pytest.mark.parametrize("what", STALLED)
def test_one_who_stalls_keeps_nobody_waiting(pair, what):
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            STALLED[what](stack.enter_context(Stranger(pair.beta)))
        pair.move_messages()


def test_one_who_connects_too_often_is_refused(pair):
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(Stranger(pair.beta)) for _ in range(101)]
        assert strangers[-1].is_cut_off()
        pair.move_messages()
        strangers[0].open()
    # Until their ends were seen they count, and the next one would be refused with them.
    wait_for(lambda: is_let_in(pair.beta))


def is_let_in(computer: Computer) -> bool:
    """Whether a stranger can open a session again."""
    with Stranger(computer) as next_one, contextlib.suppress(AssertionError, ConnectionError):
        next_one.open()
        return True
    return False


@pytest.mark.parametrize("path", [r"private$\missing", LEDGER])
def test_a_flood_of_messages_that_nobody_wants_does_not_stop_the_others(pair, path):
    """It comes in several sessions, without regard for windows, and reads no answers."""
    over = threading.Event()
    flooded = threading.Barrier(4)

    def flood(stranger: Stranger) -> None:
        packets = b"".join(stranger.message(path, bytes(2000)) for _ in range(50))
        with contextlib.suppress(OSError):
            stranger.send(packets)
            flooded.wait(WITHIN_S)
            while not over.is_set():
                stranger.send(packets)

    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(Stranger(pair.beta)) for _ in range(3)]
        threads = [threading.Thread(target=flood, args=[stranger]) for stranger in strangers]
        for stranger, thread in zip(strangers, threads, strict=True):
            stranger.open()
            thread.start()
        try:
            flooded.wait(WITHIN_S)
            pair.move_messages()
        finally:
            over.set()
            for stranger in strangers:
                stranger.socket.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
    pair.move_messages()


def test_one_who_never_acknowledges_gets_one_window_and_delays_nobody_else(pair):
    manager = pair.managers[pair.alpha]
    name = rf"DIRECT=TCP:{STRANGE}\{ORDERS}"
    bodies = [b"%d" % number for number in range(200)]
    with socket.create_server((STRANGE, pair.alpha.session_port)) as listener:
        listener.settimeout(WITHIN_S)
        manager.queue(name).send_many(bodies, recoverable=True)
        with Stranger(pair.alpha, listener.accept()[0]) as silent:
            messages = [silent.answer(STRANGER), *(silent.hear() for _ in range(63))]
            assert [message.properties.body for message in messages] == bodies[:64]
            pair.move_messages()
            found = manager.outgoing_queue(name)
            assert (found.message_count, found.in_flight_count) == (200, 64)
            assert "is not acknowledged yet" in found.explanation
            silent.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                silent.socket.recv(1)


# In the name of others.


def test_nobody_else_is_one_of_two_who_know_each_other(pair):
    pair.move_messages()
    alpha, beta = (Guid.parse(each.identifier) for each in (pair.alpha, pair.beta))
    for target, claimed in ((pair.alpha, beta), (pair.beta, alpha)):
        with Stranger(target) as impostor:
            impostor.send(encode(EstablishConnection(EstablishHeader(claimed, NIL_GUID))))
            assert impostor.is_cut_off()
    wait_for(lambda: "identity-refused" in pair.beta.log, otherwise=lambda: pair.beta.log)


def test_a_stranger_moves_no_sequence_that_is_between_others(pair):
    pair.move_messages()
    with Stranger(pair.beta) as stranger:
        stranger.open()
        place = (SequenceId(1, 0xFFFF_FFFF), 1, 0)
        # The name of the queue as it stands in the messages of the flow.
        to = direct(pair.beta.address, r"PRIVATE$\ledger")
        source = Guid.parse(pair.alpha.identifier)
        stranger.send(encode(letter(source, 1, to, b"younger", place=place)))
        pair.move_messages()
    wait_for(lambda: "sequence-refused" in pair.beta.log, otherwise=lambda: pair.beta.log)


def test_a_stranger_acknowledges_nothing_that_goes_to_another(pair):
    """He knows all of the message, as if he had read along, and who its receiver is."""
    manager, alpha = pair.managers[pair.alpha], Guid.parse(pair.alpha.identifier)
    name = rf"DIRECT=TCP:{RELAY}\{LEDGER}"
    with socket.create_server((RELAY, pair.alpha.session_port)) as listener:
        listener.settimeout(WITHIN_S)
        manager.queue(name).send(b"precious", transaction=SINGLE_MESSAGE, journal_on_success=True)
        with Stranger(pair.alpha, listener.accept()[0]) as receiver:
            message = receiver.answer(HONEST)
            with Stranger(pair.alpha) as stranger:
                stranger.open()
                for source in (STRANGER, HONEST, alpha):
                    received = MessageClass.ACK_RECEIVE
                    stranger.send(
                        encode(final_ack(message, alpha, received, source=source)),
                        encode(order_ack(message, alpha, source=source)),
                    )
                stranger.send(stranger.message(ORDERS, b"that was all"))
                heard = manager.queue(ORDERS).receive(timeout=WITHIN_S)
                assert heard.body == b"that was all"
            assert waiting_count(manager, name) == 1
            assert manager.queue("system$;journal").count() == 0
            receiver.send(encode(order_ack(message, alpha, source=HONEST)))
            wait_for(lambda: not waiting_count(manager, name), otherwise=lambda: pair.alpha.log)
    assert "acknowledgment-refused" in pair.alpha.log


def test_strictly_nobody_comes_in_whom_no_rule_names(tmp_path):
    (alone,) = neighbours(tmp_path, "ALONE")
    alone.configure('[peers]\nstrict = true\n[peers.ours]\naddresses = "10.1.0.0/16"\n')
    with running(alone), Stranger(alone) as stranger:
        assert stranger.is_cut_off()
        wait_for(lambda: "not-named" in alone.log, otherwise=lambda: alone.log)


# Byte by byte.


def one_by_one(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


def test_what_comes_byte_by_byte_is_understood(pair):
    with Stranger(pair.beta) as slow:
        slow.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data in (ESTABLISH, PARAMETERS, *(slow.message(ORDERS, b"%d" % n) for n in range(5))):
            for byte in one_by_one(data):
                slow.send(byte)
        orders = pair.managers[pair.beta].queue(ORDERS)
        received = [orders.receive(timeout=WITHIN_S).body_bytes for _ in range(5)]
        assert received == [b"%d" % number for number in range(5)]
        assert isinstance(slow.hear(), EstablishConnection)
        assert isinstance(slow.hear(), ConnectionParameters)
        while (ack := slow.hear()).session.received_count < 5:
            assert isinstance(ack, SessionAck)
        assert ack.session.received_count == 5


def pass_on(source: socket.socket, target: socket.socket) -> None:
    """Write what comes byte by byte, until either side has had enough."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            for byte in one_by_one(data):
                target.send(byte)
        target.shutdown(socket.SHUT_WR)


class ByteRelay:
    """Passes bytes on between two computers, each in a write of its own."""

    def __init__(self, source: Computer, target: Computer) -> None:
        self.source = source
        self.target = target
        self.connections: list[socket.socket] = []
        self._listener = socket.create_server((RELAY, target.session_port))
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> ByteRelay:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        for opened in (self._listener, *self.connections):
            # Those who wait for it wake up.
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(WITHIN_S)
        for opened in (self._listener, *self.connections):
            opened.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(
                    (self.target.address, self.target.session_port),
                    source_address=(self.source.address, 0),
                )
                self.connections += [near, far]
                for one, other in ((near, far), (far, near)):
                    other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._threads.append(threading.Thread(target=pass_on, args=[one, other]))
                    self._threads[-1].start()


def test_two_queue_managers_understand_each_other_byte_by_byte(pair):
    sender, receiver = pair.managers[pair.alpha], pair.managers[pair.beta]
    bodies = [b"%d" % number + bytes(number) for number in range(100)]
    with ByteRelay(pair.alpha, pair.beta) as relay:
        ledger, orders = (rf"DIRECT=TCP:{RELAY}\{path}" for path in (LEDGER, ORDERS))
        sender.queue(orders).send_many(bodies, recoverable=True)
        with sender.transaction() as transaction:
            sender.queue(ledger).send_many(bodies, transaction=transaction)
        for path in (ORDERS, LEDGER):
            queue = receiver.queue(path)
            assert [queue.receive(timeout=WITHIN_S).body_bytes for _ in bodies] == bodies
        wait_for(
            lambda: not waiting_count(sender, orders) + waiting_count(sender, ledger),
            otherwise=lambda: explanations(sender),
        )
        assert relay.connections
