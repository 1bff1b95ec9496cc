"""`make tour`: what one queue manager can do, and two, shown in a few seconds.

First a day of a queue manager: it is created, used, killed, started again, and loses nothing. Then
a second one joins, goes away and comes back; what was sent to it meanwhile arrives. What the two
said to each other was recorded, and is read byte by byte. Everything happens in a temporary
directory and on loopback addresses.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import openmsmq
from openmsmq.analysis.events import PacketItem
from openmsmq.analysis.traffic import follow
from openmsmq.analysis.transports import Ports as Followed
from openmsmq.capture.frames import read_frames
from openmsmq.model.message import MessageClass
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage
from scripts.stage import SESSION_PORT, Ports, heading, note, run, serving, wait_until

ALPHA, BETA = "127.0.0.2", "127.0.0.3"


def connect() -> openmsmq.QueueManager:
    """Connect to ALPHA, as its commands do."""
    return openmsmq.connect(os.environ["OPENMSMQ_QM"])


# A day of a queue manager.

ORDERS = r"private$\orders"
NEWS = r"private$\news"

FAILING_PROGRAM = r"""
with openmsmq.connect("{qm}") as manager, manager.transaction() as work:
    order = manager.queue(r"private$\orders").receive(timeout=5, transaction=work)
    raise RuntimeError(f"no idea what to do with {{order.body!r}}")
"""


def fail_once(program: str) -> None:
    """Run the program that fails, as the interpreter would report it."""
    try:
        exec(program, {"openmsmq": openmsmq})
    except RuntimeError as error:
        print(f"RuntimeError: {error}", flush=True)


def store_and_forward_day(directory: Path) -> None:
    heading("1. Start a queue manager and create two queues")
    with serving("ALPHA", ALPHA, directory, *COMMON) as server:
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
        program = FAILING_PROGRAM.format(qm=os.environ["OPENMSMQ_QM"])
        print(program.strip(), flush=True)
        fail_once(program)
        fail_once(program)
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
    with connect() as manager:
        manager.queue("system$;deadletter").peek(timeout=10)


# Two queue managers, one of which is away for a while.

REMOTE_ORDERS = r"BETA\private$\orders"
REMOTE_TYPO = r"BETA\private$\odrers"
COMMON = ("--config", "tour.toml")
CAPTURE = "talk.pcapng"


def write_config(directory: Path, ports: Ports) -> None:
    """Configure both: where the other one is, and short pauses, because this is a show."""
    (directory / "tour.toml").write_text(
        f"api_port = {ports.api}\n\n"
        "[hosts]\n"
        f'ALPHA = "{ALPHA}"\nBETA = "{BETA}"\n\n'
        "[parameters]\n"
        "TryConnectInterval = 500\n"
        f"MsmqIpPort = {ports.sessions}\n"
        "EnablePingService = false\n",
        encoding="utf-8",
    )


def disconnected_data_entry(directory: Path, ports: Ports) -> None:
    heading("8. Two computers: BETA has a queue for orders, and is switched off")
    print("$ cat tour.toml\n" + (directory / "tour.toml").read_text(encoding="utf-8"), flush=True)
    there = ("--qm", ports.qm(BETA))
    with (
        serving("ALPHA", ALPHA, directory, *COMMON, "--capture", CAPTURE),
        serving("BETA", BETA, directory, *COMMON) as beta,
    ):
        run(*there, "queue", "create", ORDERS, "--transactional")
        beta.kill()

        heading("9. ALPHA sends to it all the same, also to a queue that BETA does not have")
        order = ("--transactional", "--deadletter")
        for number, what in enumerate(("a pot of tea", "a cup of milk", "two scones"), 1):
            run("send", REMOTE_ORDERS, "--label", f"order {number}", "--body", what, *order)
        run("send", REMOTE_TYPO, "--label", "order 4", "--body", "jam", *order)
        wait_until(lambda: "does not accept" in explanation(REMOTE_ORDERS), "BETA was tried")
        run("outgoing", "show", REMOTE_ORDERS)
        note("The first line says what the first message waits for. Nothing is lost meanwhile.")

        heading("10. BETA comes back: the orders arrive, each once and in order")
        beta.start()
        wait_until(lambda: orders_to_receive() == 3, "the orders reached BETA")
        run("outgoing", "show", REMOTE_ORDERS)
        note("They are in their queue. Three programs at BETA receive them:")
        for _ in range(3):
            run(*there, "receive", ORDERS)
        wait_until(lambda: orders_to_receive() == 0, "ALPHA heard that they were received")
        run("outgoing", "list")
        note("BETA has told ALPHA that all three were received, and which one has no queue:")
        run("deadletter", "--transactional")


def explanation(name: str) -> str:
    with connect() as manager:
        return manager.outgoing_queue(name).explanation


def orders_to_receive() -> int:
    """How many orders ALPHA knows to be in their queue, and not received there."""
    with connect() as manager:
        return manager.outgoing_queue(REMOTE_ORDERS).unread_count


# What the two have said, byte by byte.


def first_order(capture: Path, port: int) -> bytes:
    """Find the first message of an application in a recording."""
    with capture.open("rb") as file:
        for event in follow(read_frames(file.read), Followed(tcp=frozenset({port}))):
            packet = event.packet if isinstance(event, PacketItem) else None
            if (
                isinstance(packet, UserMessage)
                and packet.properties.message_class == MessageClass.NORMAL
            ):
                return event.data
    sys.exit("stopped: the recording has no message")


def readable_packets(directory: Path, ports: Ports) -> None:
    capture = directory / CAPTURE
    other_port = () if ports.sessions == SESSION_PORT else ("--tcp-port", str(ports.sessions))

    heading("11. What ALPHA has recorded: handshake, messages, acknowledgments")
    run("packet", "decode", "--summary", *other_port, str(capture))

    heading("12. One packet of it, field by field: the first order")
    order = first_order(capture, ports.sessions)
    run("packet", "decode", order.hex(), lines=70)

    heading("13. The same message with one wrong byte: what is wrong, and where")
    damaged = bytearray(order)
    damaged[outline(order).properties_offset + 1] = 0xFF
    run("packet", "decode", damaged.hex(), lines=8, expected=1)


def main() -> None:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="openmsmq-tour-") as name:
        directory, ports = Path(name), Ports((ALPHA, BETA))
        os.environ["OPENMSMQ_QM"] = ports.qm(ALPHA)
        write_config(directory, ports)
        store_and_forward_day(directory)
        disconnected_data_entry(directory, ports)
        readable_packets(directory, ports)

    heading("Try it yourself")
    program = Path(sys.executable).with_name("openmsmq")
    print(f"  {program} serve --data my-queues")
    print(f"  {program} queue create 'private$\\orders'")
    print("  docs/start.md goes on from here, docs/guides/send-to-another-computer.md about two")
    print("  computers, docs/guides/read-a-capture.md about packets.")
    print(f"  This tour took {time.perf_counter() - started:.0f} seconds.")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        # Whoever read this has seen enough; nothing may be written any more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
