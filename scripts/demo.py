"""`make demo`: what OpenMSMQ can do today, shown in a few seconds.

Two imaginary queue managers talk; the conversation is written to a capture and read again with the
real command. Everything happens in a temporary directory and nothing is sent anywhere.
"""

from __future__ import annotations

import ipaddress
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from openmsmq.capture.link_layers import Endpoint
from openmsmq.capture.recorder import Recorder
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


def openmsmq(directory: Path, *arguments: str, lines: int | None = None, expected: int = 0) -> None:
    """Run the command as a person would, and show what it was and what it printed."""
    shown = " ".join(part if len(part) < 60 else f"{part[:56]}..." for part in arguments)
    print(f"$ openmsmq {shown}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "openmsmq.cli.app", *arguments],
        cwd=directory,
        stdout=subprocess.PIPE,
        check=False,
    )
    text = done.stdout.decode().rstrip().splitlines()
    print("\n".join(text[:lines]), flush=True)
    if lines is not None and len(text) > lines:
        print(f"  ... and {len(text) - lines} lines more", flush=True)
    if done.returncode != expected:
        sys.exit(f"demo: the command ended with exit code {done.returncode}, not {expected}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="openmsmq-demo-") as name:
        directory = Path(name)
        (directory / "talk.pcapng").write_bytes(record())

        heading("1. A conversation: discovery, ping, handshake, a message, its acknowledgments")
        openmsmq(directory, "packet", "decode", "--summary", "talk.pcapng")

        heading("2. One packet, field by field: a transactional message")
        openmsmq(directory, "packet", "decode", packets.encode(order()).hex(), lines=70)

        heading("3. The same message with one wrong byte: what is wrong, and where")
        damaged = bytearray(packets.encode(order()))
        damaged[16 + 48 + 52 + 20 + 1] = 0xFF
        openmsmq(directory, "packet", "decode", damaged.hex(), lines=8, expected=1)

    heading("Try it yourself")
    command = [str(Path(sys.executable).with_name("openmsmq")), "packet", "decode"]
    print(f"  {shlex.join(command)} yours.pcapng")
    print("  docs/guides/read-a-capture.md says how to capture the traffic of a queue manager.")


if __name__ == "__main__":
    main()
