"""What those can rely on who trace their messages, whichever client they use."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import time_ns
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import openmsmq as mq
from openmsmq import aio
from openmsmq.client import telemetry
from openmsmq.client.formatters.nservicebus import write_headers
from openmsmq.client.settings import Settings
from openmsmq.client.telemetry import BODY_WITH_CONTEXT_MAX_BYTES, LINKS_MAX_COUNT
from openmsmq.model import errors
from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.telemetry import context_of
from tests.contracts.awaited import connect_awaited
from tests.server_thread import start_server

ORDERS = r"private$\orders"
EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="session", autouse=True)
def provider() -> None:
    """Be the application that decides where spans go; OpenTelemetry lets it do so once."""
    # It keeps more links than we make.
    limits = SpanLimits(max_links=2 * LINKS_MAX_COUNT)
    made = TracerProvider(shutdown_on_exit=False, span_limits=limits)
    made.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(made)


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with start_server(str(tmp_path)) as server:
        yield Settings(address=f"{server.host}:{server.port}")


@pytest.fixture(params=["blocking", "asyncio"])
def manager(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Any]:
    yield from connected(request.param, settings, telemetry=True)


@pytest.fixture
def orders(manager: Any) -> Any:
    queue = manager.create_queue(ORDERS)
    EXPORTER.clear()
    return queue


def connected(client: str, settings: Settings, *, telemetry: bool) -> Iterator[Any]:
    settings = Settings(address=settings.address, telemetry=telemetry)
    with ExitStack() as opened:
        made: Any
        if client == "blocking":
            made = mq.connect(settings)
        else:
            made = connect_awaited(opened.enter_context(asyncio.Runner()), settings)
        opened.callback(made.close)
        yield made


def spans() -> tuple[ReadableSpan, ...]:
    found = EXPORTER.get_finished_spans()
    EXPORTER.clear()
    return found


def span_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def parent_id(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def test_a_send_and_a_receive_are_one_trace(orders: Any, settings: Settings) -> None:
    identifier = orders.send("tea", label="order")
    message = orders.receive(timeout=5)
    sent, received = spans()
    assert (sent.name, sent.kind) == (f"send {ORDERS}", SpanKind.PRODUCER)
    assert (received.name, received.kind) == (f"receive {ORDERS}", SpanKind.CONSUMER)
    assert parent_id(sent) is None
    assert (parent_id(received), received.links) == (span_id(sent), ())
    host, port = settings.host_and_port
    common = {
        "messaging.system": "msmq",
        "messaging.destination.name": ORDERS,
        "messaging.message.id": str(identifier),
        "messaging.message.body.size": len("tea".encode("utf-16-le")),
        "server.address": host,
        "server.port": port,
    }
    for span, name in ((sent, "send"), (received, "receive")):
        operation = {"messaging.operation.name": name, "messaging.operation.type": name}
        assert dict(span.attributes or {}) == common | operation
        assert span.status.status_code is StatusCode.UNSET
    assert (message.body, message.label) == ("tea", "order")
    assert message.headers.keys() == {"traceparent"}


def under_way(sent: ReadableSpan, ordering: ReadableSpan, peeked: ReadableSpan) -> None:
    """See that both are children of what the application does, and the read is linked."""
    assert parent_id(sent) == parent_id(peeked) == span_id(ordering)
    assert [link.context.span_id for link in peeked.links] == [span_id(sent)]
    assert (peeked.attributes or {})["messaging.operation.name"] == "peek"
    assert (peeked.attributes or {})["messaging.operation.type"] == "receive"


def test_where_the_application_is_doing_something_its_span_is_the_parent(
    settings: Settings,
) -> None:
    with mq.connect(settings, telemetry=True) as manager:
        queue = manager.create_queue(ORDERS)
        EXPORTER.clear()
        with trace.get_tracer("application").start_as_current_span("order"):
            queue.send("tea")
            queue.peek(timeout=5)
    sent, peeked, ordering = spans()
    under_way(sent, ordering, peeked)


def test_so_it_is_in_a_task(settings: Settings) -> None:
    async def order() -> None:
        async with aio.connect(settings, telemetry=True) as manager:
            queue = await manager.create_queue(ORDERS)
            EXPORTER.clear()
            with trace.get_tracer("application").start_as_current_span("order"):
                await queue.send("tea")
                await queue.peek(timeout=5)

    asyncio.run(order())
    sent, peeked, ordering = spans()
    under_way(sent, ordering, peeked)


def test_what_is_done_with_a_message_can_go_on_with_its_trace(orders: Any) -> None:
    orders.send("tea")
    message = orders.receive(timeout=5)
    with trace.get_tracer("application").start_as_current_span("brew", context_of(message)):
        pass
    sent, _, brewed = spans()
    assert parent_id(brewed) == span_id(sent)
    orders.send("tea", extension=b"mine")
    assert context_of(orders.receive(timeout=5)) == {}


def test_many_are_sent_with_one_span_and_read_with_links(orders: Any) -> None:
    orders.send_many(["a", mq.OutgoingMessage(body="b", headers={"A": "B"})], label="x")
    orders.send("c")
    orders.send_many([mq.OutgoingMessage(body="d", extension=b"mine")])
    first, second, last = spans()
    messages = orders.receive_many(10, timeout=5)
    (read,) = spans()
    assert [message.body for message in messages] == ["a", "b", "c", "d"]
    assert [message.label for message in messages] == ["x", "x", "", ""]
    assert messages[1].headers["A"] == "B"
    assert messages[3].extension == b"mine"
    assert (first.attributes or {})["messaging.batch.message_count"] == 2
    assert (last.attributes or {})["messaging.batch.message_count"] == 1
    assert (read.attributes or {})["messaging.batch.message_count"] == 4
    assert parent_id(read) is None
    linked = [link.context.span_id for link in read.links]
    assert linked == [span_id(first), span_id(first), span_id(second)]


def test_one_read_has_so_many_links_and_no_more(orders: Any) -> None:
    orders.send_many(["tea"] * (LINKS_MAX_COUNT + 1))
    assert len(orders.peek_many(LINKS_MAX_COUNT + 1, timeout=5)) == LINKS_MAX_COUNT + 1
    assert len(spans()[-1].links) == LINKS_MAX_COUNT


def test_all_ways_to_read_one_message_make_a_span_of_its_trace(orders: Any) -> None:
    identifier = orders.send("tea", correlation_id=bytes(19) + b"\1")
    (sent,) = spans()
    message = orders.peek_by_id(identifier)
    orders.peek_by_correlation_id(bytes(19) + b"\1")
    orders.peek_by_lookup_id(message.lookup_id)
    orders.end_receive(orders.begin_receive(0), remove=False)
    orders.end_receive(orders.begin_receive_by_lookup_id(message.lookup_id), remove=False)
    assert len(list(orders.browse())) == 1
    with orders.cursor() as cursor:
        cursor.next()
        cursor.peek()
        cursor.receive()
    found = spans()
    assert [parent_id(span) for span in found] == [span_id(sent)] * 9
    names = [str((span.attributes or {})["messaging.operation.name"]) for span in found]
    assert names == ["peek"] * 3 + ["receive"] * 2 + ["peek"] * 3 + ["receive"]


def test_an_extension_of_the_application_stays_as_it_is(orders: Any) -> None:
    orders.send("a", extension=b"\0mine\0")
    orders.send(mq.OutgoingMessage(body="b", extension=b"mine"), label="x")
    orders.send("c", headers={"traceparent": "my own"})
    orders.send_many(["d"], extension=b"mine")
    assert [each.extension for each in orders.receive_many(10)] == [
        b"\0mine\0",
        b"mine",
        write_headers({"traceparent": "my own"}),
        b"mine",
    ]
    with pytest.raises(errors.PropertiesConflict):
        orders.send("e", extension=b"mine", headers={})


def test_headers_of_the_application_get_company(orders: Any) -> None:
    orders.send(mq.OutgoingMessage(body="a", headers={"A": "B"}))
    orders.send("b", headers={"A": "B"})
    orders.send_many(["c", mq.OutgoingMessage(body="d")], headers={"A": "B"})
    messages = orders.receive_many(10)
    assert len(messages) == 4
    for message in messages:
        assert message.headers["A"] == "B"
        assert message.headers.keys() == {"A", "traceparent"}


@pytest.mark.parametrize(
    "body", [bytes(PACKET_MAX_BYTES - 300), "x" * (PACKET_MAX_BYTES // 2 - 150)]
)
def test_a_message_that_just_fits_is_sent_without_a_context(orders: Any, body: bytes | str) -> None:
    orders.send(body)
    assert orders.receive(5).extension == b""
    orders.send_many([body])
    assert orders.receive(5).extension == b""
    orders.send(body[: BODY_WITH_CONTEXT_MAX_BYTES // (1 + isinstance(body, str))])
    assert orders.receive(5).headers.keys() == {"traceparent"}


@pytest.mark.parametrize(
    "extension",
    [
        b"\xff\xfe\0garbage",
        write_headers({"traceparent": "00-zz-zz-01"}),
        write_headers({"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01"}),
        b"<ArrayOfHeaderInfo><HeaderInfo><Key>traceparent</Key>",
    ],
)
def test_a_context_that_is_none_harms_nobody(orders: Any, extension: bytes) -> None:
    orders.send("tea", extension=extension)
    assert orders.receive(5).body == "tea"
    sent, received = spans()
    assert (parent_id(received), received.links) == (None, ())
    assert received.status.status_code is StatusCode.UNSET
    assert sent.context is not None
    assert received.context is not None
    assert sent.context.trace_id != received.context.trace_id


def test_a_state_of_others_is_passed_on_and_its_nonsense_is_not(orders: Any) -> None:
    parent = f"00-{7:032x}-{7:016x}-01"
    for state, kept in (("vendor=a&b,other=1", 2), ("=;,,;;", 0)):
        orders.send("x", extension=write_headers({"traceparent": parent, "tracestate": state}))
        orders.receive(5)
        received = spans()[-1]
        assert received.context is not None
        assert received.context.trace_id == 7
        assert len(received.context.trace_state) == kept


def test_who_waits_in_vain_makes_no_span_and_a_failure_says_what_it_is(
    manager: Any, orders: Any
) -> None:
    with pytest.raises(errors.ReceiveTimeout):
        orders.receive(timeout=0)
    with pytest.raises(errors.MessageNotFound):
        orders.peek_by_lookup_id(1)
    assert spans() == ()
    away = manager.queue(r"private$\away")
    for verb, argument in ((away.send, "x"), (away.receive, 0), (away.send_many, ["x"])):
        with pytest.raises(errors.QueueNotFound):
            verb(argument)
        (failed,) = spans()
        assert failed.status.status_code is StatusCode.ERROR
        assert (failed.attributes or {})["error.type"] == "QueueNotFound"


def test_to_wait_for_a_message_is_no_part_of_its_trace(
    orders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.send("tea")
    an_hour_ago = itertools.chain([time_ns() - 3600 * 10**9], iter(time_ns, None))
    monkeypatch.setattr(telemetry, "time_ns", lambda: next(an_hour_ago))
    orders.receive(timeout=5)
    received = spans()[-1]
    assert received.start_time is not None
    assert received.end_time is not None
    assert 0 <= received.end_time - received.start_time < 60 * 10**9


@pytest.mark.parametrize("client", ["blocking", "asyncio"])
def test_without_asking_there_are_no_spans_and_no_contexts(client: str, settings: Settings) -> None:
    for plain in connected(client, settings, telemetry=False):
        queue = plain.create_queue(ORDERS)
        EXPORTER.clear()
        queue.send("tea")
        queue.send_many(["tea"])
        assert [each.extension for each in queue.receive_many(10)] == [b"", b""]
        assert spans() == ()


def test_options_are_those_of_the_plain_verbs(orders: Any) -> None:
    with pytest.raises(TypeError, match="did you mean 'label'"):
        orders.send("x", lable="y")
    with pytest.raises(TypeError, match="did you mean 'timeout'"):
        orders.receive(timeuot=0)


def test_where_nobody_makes_spans_messages_stay_as_they_are(settings: Settings) -> None:
    program = (
        "import openmsmq as mq\n"
        f"with mq.connect({settings.address!r}, telemetry=True) as manager:\n"
        f"    queue = manager.create_queue({ORDERS!r})\n"
        "    queue.send('tea')\n"
        "    print(queue.receive(5).extension)\n"
    )
    assert run(program) == "b''\n"


def test_without_opentelemetry_the_sentence_says_what_to_install(settings: Settings) -> None:
    program = (
        "import sys\nsys.modules['opentelemetry'] = None\n"
        "import openmsmq as mq\n"
        f"try:\n    mq.connect({settings.address!r}, telemetry=True)\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    assert run(program).endswith("install openmsmq[telemetry]\n")


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout
