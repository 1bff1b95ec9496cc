"""A collector of OTLP over HTTP, on loopback, that keeps what it is sent."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WITHIN_S = 60.0


class Span(NamedTuple):
    """A span as it came."""

    service: str
    host: str
    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    began_ns: int
    ended_ns: int
    facts: dict[str, str | int]


class Collector(AbstractContextManager["Collector"]):
    """Takes spans, or refuses them with a status, or leaves who asks without an answer."""

    def __init__(self) -> None:
        self.status = 200
        self.paths: set[str] = set()
        self.keys: set[str | None] = set()
        """What stood in the header `X-Key`."""
        self._open = threading.Event()
        self._open.set()
        self._asked = threading.Event()
        self._spans: list[Span] = []
        self._changed = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                collector.keys.add(self.headers.get("X-Key"))
                collector.take(self.path, data)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def endpoint(self) -> str:
        """Its address, as a configuration has it."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def hang(self) -> None:
        """Answer nobody any more."""
        self._open.clear()

    def answer(self) -> None:
        """Answer all, those who wait too."""
        self._open.set()

    def asked(self) -> bool:
        """Wait until somebody has asked; say whether that was so."""
        return self._asked.wait(WITHIN_S)

    def take(self, path: str, data: bytes) -> None:
        self._asked.set()
        self._open.wait()
        request = ExportTraceServiceRequest()
        request.ParseFromString(data)
        if self.status == 200:
            with self._changed:
                self.paths.add(path)
                self._spans += spans_of(request)
                self._changed.notify_all()

    def spans(self, count: int) -> list[Span]:
        """Wait for so many spans; gives all that came, the earliest first."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._spans) >= count, WITHIN_S)
            return sorted(self._spans, key=lambda span: span.began_ns)


def spans_of(request: ExportTraceServiceRequest) -> list[Span]:
    found = []
    for resource_spans in request.resource_spans:
        resource = facts_of(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            found += [
                Span(
                    str(resource.get("service.name", "")),
                    str(resource.get("host.name", "")),
                    span.name,
                    span.kind,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    facts_of(span.attributes),
                )
                for span in scope_spans.spans
            ]
    return found


def facts_of(attributes: Any) -> dict[str, str | int]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
