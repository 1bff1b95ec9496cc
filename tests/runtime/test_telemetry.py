"""A trace of one message, from the program that sends it to the one that receives it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from openmsmq.client.formatters.nservicebus import write_headers
from openmsmq.runtime.limits import SPAN_EXPORT_S, SPANS_STOP_S
from openmsmq.runtime.server import ExitCode
from tests.runtime.collector import Collector, Span
from tests.runtime.computers import Computer, environment
from tests.runtime.scripted_engine import free_port

ALPHA, BETA = "127.0.0.61", "127.0.0.62"
ORDERS = r"private$\orders"
PRODUCER, CONSUMER, CLIENT, INTERNAL = 4, 5, 3, 1

PROGRAM = r"""
import sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
import openmsmq as mq

what, service, collector, address, queue = sys.argv[1:]
provider = TracerProvider(resource=Resource.create({"service.name": service}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(collector + "/v1/traces")))
trace.set_tracer_provider(provider)
with mq.connect(address, telemetry=True) as manager:
    if what == "send":
        print(manager.queue(queue).send("tea", recoverable=True))
    else:
        print(manager.queue(queue).receive(timeout=60).message_id)
"""


def program(what: str, service: str, collector: Collector, computer: Computer, queue: str) -> str:
    """Run a program that traces what it does; gives the identifier of its message."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, what, service, collector.endpoint, computer.qm, queue],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    return done.stdout.strip()


@contextmanager
def two_computers(tmp_path: Path, tables: str) -> Iterator[tuple[Computer, Computer]]:
    port = free_port(ALPHA, BETA)
    made = [
        Computer(tmp_path, name, address, port, tables=tables)
        for name, address in (("ALPHA", ALPHA), ("BETA", BETA))
    ]
    try:
        for computer in made:
            computer.start()
        alpha, beta = made
        with beta.connect() as manager:
            manager.create_queue(ORDERS)
        yield alpha, beta
    finally:
        for computer in made:
            if computer.is_running:
                computer.kill()


def test_one_trace_has_send_transfer_arrival_and_receive(tmp_path: Path) -> None:
    with Collector() as collector:
        tables = f'[telemetry]\nendpoint = "{collector.endpoint}"\nservice_name = "queues"\n'
        with two_computers(tmp_path, tables) as (alpha, beta):
            identifier = program("send", "shop", collector, alpha, beta.queue(ORDERS))
            assert program("receive", "kitchen", collector, beta, ORDERS) == identifier
            found = {span.name.partition(" ")[0]: span for span in collector.spans(4)}
            assert (alpha.end(), beta.end()) == (0, 0)
            assert len(collector.spans(4)) == 4
            assert "spans-" not in alpha.log + beta.log
    send, transfer, arrive, receive = (
        found[name] for name in ("send", "transfer", "arrive", "receive")
    )
    assert len({span.trace_id for span in found.values()}) == 1
    assert send.parent_id == ""
    assert {span.parent_id for span in (transfer, arrive, receive)} == {send.span_id}
    assert [span.kind for span in (send, transfer, arrive, receive)] == [
        PRODUCER,
        CLIENT,
        INTERNAL,
        CONSUMER,
    ]
    assert [(span.service, span.host) for span in (send, transfer, arrive, receive)] == [
        ("shop", ""),
        ("queues", "ALPHA"),
        ("queues", "BETA"),
        ("kitchen", ""),
    ]
    assert {span.facts["messaging.message.id"] for span in found.values()} == {identifier}
    assert {span.facts["messaging.message.body.size"] for span in found.values()} == {6}
    assert {span.facts["messaging.system"] for span in found.values()} == {"msmq"}
    assert transfer.facts["network.peer.address"] == BETA
    assert arrive.facts["messaging.destination.name"] == ORDERS
    in_order(send, transfer, arrive)


def in_order(send: Span, transfer: Span, arrive: Span) -> None:
    """See that it left after it was sent, came after it left, and was acknowledged after that."""
    assert send.began_ns <= transfer.began_ns <= arrive.began_ns
    assert arrive.ended_ns <= transfer.ended_ns


def test_messages_move_beside_a_collector_that_is_away(tmp_path: Path) -> None:
    port = free_port("127.0.0.1")
    tables = f'[telemetry]\nendpoint = "http://127.0.0.1:{port}"\n'
    extension = write_headers({"traceparent": f"00-{1:032x}-{1:016x}-01"})
    with two_computers(tmp_path, tables) as (alpha, beta):
        with alpha.connect() as sender, beta.connect() as receiver:
            there = sender.queue(beta.queue(ORDERS))
            there.send_many([b"%d" % n for n in range(200)], extension=extension, recoverable=True)
            orders = receiver.queue(ORDERS)
            bodies = [orders.receive(timeout=60).body for _ in range(200)]
        assert bodies == [b"%d" % n for n in range(200)]
        assert (alpha.end(), beta.end()) == (0, 0)
        for computer in (alpha, beta):
            (line,) = [line for line in computer.log_lines() if "spans-dropped" in line]
            assert f"collector=http://127.0.0.1:{port}/…" in line
            assert " library " not in computer.log


def test_nothing_is_traced_where_the_sender_does_not_record(tmp_path: Path) -> None:
    with Collector() as collector:
        tables = f'[telemetry]\nendpoint = "{collector.endpoint}"\n'
        with two_computers(tmp_path, tables) as (alpha, beta):
            with alpha.connect() as sender, beta.connect() as receiver:
                there = sender.queue(beta.queue(ORDERS))
                unsampled = write_headers({"traceparent": f"00-{1:032x}-{1:016x}-00"})
                for extension in (b"", b"mine", unsampled):
                    there.send("tea", extension=extension, recoverable=True)
                found = [receiver.queue(ORDERS).receive(60).extension for _ in range(3)]
            assert found == [b"", b"mine", unsampled]
            assert (alpha.end(), beta.end()) == (0, 0)
        assert collector.spans(0) == []


OFF = r"""
import sys
import openmsmq as mq
from tests.server_thread import start_server

with start_server(sys.argv[1]) as server, mq.connect(f"{server.host}:{server.port}") as manager:
    queue = manager.create_queue("private$\\orders")
    queue.send("tea")
    queue.receive(5)
    print("opentelemetry" in sys.modules)
"""


def test_without_the_table_opentelemetry_is_not_even_loaded(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", OFF, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={**environment(), "PYTHONPATH": f"{root / 'src'}:{root}"},
    )
    assert done.stdout == "False\n"


def test_without_opentelemetry_a_start_says_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text('[telemetry]\nendpoint = "http://127.0.0.1:4318"\n', encoding="utf-8")
    code = (
        "import sys\nsys.modules['opentelemetry'] = None\n"
        "from openmsmq.cli.app import main\nmain()\n"
    )
    command = ["serve", "--config", str(file), "--data", str(tmp_path / "data"), "--no-transfer"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command, "--api-port", "0"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == ExitCode.NOT_STARTED
    assert "install openmsmq[telemetry]" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_stop_is_in_time_while_a_collector_hangs(tmp_path: Path) -> None:
    with Collector() as collector:
        collector.hang()
        tables = f'[telemetry]\nendpoint = "{collector.endpoint}"\n'
        with two_computers(tmp_path, tables) as (_, beta):
            extension = write_headers({"traceparent": f"00-{1:032x}-{1:016x}-01"})
            with beta.connect() as manager:
                manager.queue(ORDERS).send("tea", extension=extension, recoverable=True)
                assert collector.asked()
                # While the export hangs, everybody else is served.
                assert manager.queue(ORDERS).receive(5).body == "tea"
            assert beta.end() == 0
            stopping, stopped = (
                datetime.fromisoformat(line.split()[0])
                for line in beta.log_lines()
                if " stopping " in line or " stopped " in line
            )
            # Less than an export may take.
            assert (stopped - stopping).total_seconds() < SPANS_STOP_S + 1.5 < SPAN_EXPORT_S
        collector.answer()
