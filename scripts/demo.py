"""`make demo`: what OpenMSMQ can do today, shown in a few seconds.

First a day of a queue manager: it is created, used, killed, started again, and loses nothing.
Then two imaginary queue managers talk; the conversation is written to a capture and read again.
Everything happens in a temporary directory and on loopback addresses.
"""

from __future__ import annotations

import contextlib
import io
import ipaddress
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import openmsmq
from openmsmq.capture.link_layers import Endpoint
from openmsmq.capture.recorder import Recorder
from openmsmq.cli.app import main as command_line
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.wire import packets
from openmsmq.wire.acknowledgments import OrderAck
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, PingPacket, ServerEntry
from openmsmq.wire.headers import transaction, user
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.order_packets import order_ack_packet
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
)

ALPHA = Guid.parse("a1fa0000-0000-4000-8000-000000000001")
BETA = Guid.parse("be7a0000-0000-4000-8000-000000000002")
SITE = Guid.parse("517e0000-0000-4000-8000-000000000003")
REQUEST = Guid.parse("4e900000-0000-4000-8000-000000000004")

START_S = 1_700_000_000
STEP_NS = 1_500_000
SEQUENCE = SequenceId(1, START_S)


def endpoint(address: str, port: int) -> Endpoint:
    return Endpoint(ipaddress.ip_address(address).packed, port)


ALPHA_PORT, BETA_PORT = endpoint("10.0.0.1", 50_000), endpoint("10.0.0.2", 1801)
BETA_PING, EVERYONE = endpoint("10.0.0.2", 3527), endpoint("10.0.0.255", 1801)


def order() -> UserMessage:
    """A transactional message, the kind that arrives exactly once and in order."""
    return UserMessage(
        UserHeader(
            ALPHA,
            sent_time_s=START_S,
            message_number=1,
            flags=user.RECOVERABLE,
            destination=DirectName(r"OS:beta\private$\orders"),
        ),
        MessageProperties.of("one order of tea".encode("utf-16-le"), "order 1", body_type=8),
        transaction=TransactionHeader(
            SEQUENCE, 1, flags=transaction.FIRST | transaction.LAST | 7 << 4
        ),
        session=SessionHeader(0, 0, 0, 1, 1),
    )


def conversation() -> list[tuple[bool, Packet]]:
    """What is said on the connection; True is said by alpha."""
    parameters = ConnectionParameters(ParametersHeader(1_496, 120_000, 64))
    accepted = order_ack_packet(
        OrderAck.up_to(SEQUENCE, 1),
        source=BETA,
        to=ALPHA,
        message_number=9,
        sent_time_s=START_S,
        reach_queue_within_s=345_600,
    )
    return [
        (True, EstablishConnection(EstablishHeader(ALPHA, BETA, 1_000))),
        (False, EstablishConnection(EstablishHeader(ALPHA, BETA, 1_000))),
        (True, parameters),
        (False, parameters),
        (True, order()),
        (False, SessionAck(SessionHeader(1, 1, 1))),
        (False, accepted),
    ]


def record() -> bytes:
    """Give the conversation, with what comes before it, as the bytes of a capture."""
    recorder = Recorder()
    times = iter(range(START_S * 1_000_000_000, 2**63, STEP_NS))
    parts = [recorder.start()]
    query = DirectoryQuery(SITE, REQUEST, SITE)
    answer = DirectoryAnswer(REQUEST, (SITE,), SITE, (ServerEntry("BETA"),))
    ping = PingPacket(ALPHA, 4)
    for source, destination, datagram in (
        (ALPHA_PORT, EVERYONE, query),
        (BETA_PORT, ALPHA_PORT, answer),
        (ALPHA_PORT, BETA_PING, ping),
        (BETA_PING, ALPHA_PORT, ping.answer(BETA, refuse=False)),
    ):
        parts.append(recorder.datagram(source, destination, datagram.encode(), next(times)))
    parts.append(recorder.opened(ALPHA_PORT, BETA_PORT, next(times)))
    for by_alpha, packet in conversation():
        source, destination = (ALPHA_PORT, BETA_PORT) if by_alpha else (BETA_PORT, ALPHA_PORT)
        parts.append(recorder.sent(source, destination, packets.encode(packet), next(times)))
    parts.append(recorder.closed(ALPHA_PORT, BETA_PORT, next(times)))
    return b"".join(parts)


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n== {text}\n", flush=True)


def run(*arguments: str, lines: int | None = None, expected: int = 0) -> str:
    """Run a command as a person would, and show what it was and what it printed."""
    shown = " ".join(_quoted(part) for part in arguments)
    print(f"$ openmsmq {shown}", flush=True)
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    sys.argv = ["openmsmq", *arguments]
    code: object = 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            command_line()
        except SystemExit as stopped:
            code = stopped.code
    output.flush()
    text = output.buffer.getvalue().decode().rstrip()  # type: ignore[attr-defined]
    parts = text.splitlines()
    print("\n".join(parts[:lines]), flush=True)
    if lines is not None and len(parts) > lines:
        print(f"  ... and {len(parts) - lines} lines more", flush=True)
    if code != expected:
        sys.exit(f"demo: the command ended with exit code {code}, not {expected}")
    return text


def _quoted(part: str) -> str:
    part = part if len(part) < 60 else f"{part[:56]}..."
    return f"'{part}'" if set(part) & set(" $;\\") else part


def note(text: str) -> None:
    print(f"# {text}", flush=True)


# A day of a queue manager.

ADDRESS = "127.0.0.2"
ORDERS = r"private$\orders"
NEWS = r"private$\news"

FAILING_PROGRAM = r"""
with openmsmq.connect("127.0.0.2") as manager, manager.transaction() as work:
    order = manager.queue(r"private$\orders").receive(timeout=5, transaction=work)
    raise RuntimeError(f"no idea what to do with {order.body!r}")
"""


class Server:
    """`openmsmq serve`, which the demo may kill."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self.start()

    def start(self) -> None:
        arguments = ["serve", "--name=ALPHA", f"--data={self._data}", f"--address={ADDRESS}"]
        print(f"$ openmsmq serve --name ALPHA --data {self._data.name} --address {ADDRESS} &")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "openmsmq.cli.app", *arguments, "--log-level=error"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        if not ready:
            sys.exit(f"demo: no queue manager could be started on {ADDRESS}")
        print(" ".join(ready.split()[:2]), flush=True)

    def kill(self) -> None:
        print(f"$ kill -9 {self.process.pid}", flush=True)
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def serving(data: Path) -> Iterator[Server]:
    server = Server(data)
    try:
        yield server
    finally:
        server.stop()


def fail_once() -> None:
    """Run the program that fails, as the interpreter would report it."""
    try:
        exec(FAILING_PROGRAM, {"openmsmq": openmsmq})
    except RuntimeError as error:
        print(f"RuntimeError: {error}", flush=True)


def store_and_forward_day(directory: Path) -> None:
    os.environ["OPENMSMQ_QM"] = ADDRESS
    heading("1. Start a queue manager and create two queues")
    with serving(directory / "alpha") as server:
        run("queue", "create", ORDERS, "--transactional", "--journal")
        run("queue", "create", NEWS)

        heading("2. Send: two orders in transactions, and news that need not last")
        run("send", ORDERS, "--transactional", "--label", "order 1", "--body", "a pot of tea")
        run("send", ORDERS, "--transactional", "--label", "order 2", "--body", "a cup of milk")
        run("send", NEWS, "--label", "weather", "--body", "it rains")
        run("queue", "list")

        heading("3. Kill the queue manager without warning, and start it again")
        server.kill()
        run("status", expected=4)
        server.start()
        run("queue", "list")
        note("The orders are there. The news was express: held in memory, fast, and gone.")

        heading("4. A program receives an order in a transaction and fails, twice")
        print(FAILING_PROGRAM.strip(), flush=True)
        fail_once()
        fail_once()
        run("peek", ORDERS)
        note("Each time the order went back. Its abort count tells programs to put it aside:")
        run("queue", "move", ORDERS, f"{ORDERS};poison", "--count", "1")

        heading("5. Nobody receives a message in time: it becomes a dead letter")
        until = ("--time-to-be-received", "1", "--deadletter", "--recoverable")
        run("send", NEWS, "--label", "offer", "--body", "only today", *until)
        wait_for_dead_letter()
        run("deadletter")

        heading("6. Receive what is left, and look into the journal")
        run("receive", ORDERS)
        run("journal", ORDERS)
        run("receive", ORDERS, expected=3)

    heading("7. Stop it in order, and check every record it keeps")
    run("store", "check", str(directory / "alpha"))


def wait_for_dead_letter() -> None:
    with openmsmq.connect(ADDRESS) as manager:
        manager.queue("system$;deadletter").peek(timeout=10)


# A conversation of two queue managers, byte by byte.


def readable_packets(directory: Path) -> None:
    capture = directory / "talk.pcapng"
    capture.write_bytes(record())

    heading("8. A conversation: discovery, ping, handshake, a message, its acknowledgments")
    run("packet", "decode", "--summary", str(capture))

    heading("9. One packet, field by field: a transactional message")
    run("packet", "decode", packets.encode(order()).hex(), lines=70)

    heading("10. The same message with one wrong byte: what is wrong, and where")
    damaged = bytearray(packets.encode(order()))
    damaged[16 + 48 + 52 + 20 + 1] = 0xFF
    run("packet", "decode", damaged.hex(), lines=8, expected=1)


def main() -> None:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="openmsmq-demo-") as name:
        store_and_forward_day(Path(name))
        readable_packets(Path(name))

    heading("Try it yourself")
    program = Path(sys.executable).with_name("openmsmq")
    print(f"  {program} serve --data my-queues")
    print(f"  {program} queue create 'private$\\orders'")
    print("  docs/start.md goes on from here; docs/guides/read-a-capture.md is about packets.")
    print(f"  This demo took {time.perf_counter() - started:.0f} seconds.")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        # Whoever read this has seen enough; nothing may be written any more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
