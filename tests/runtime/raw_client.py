"""A client of nothing but frames, so that a test can also do what a good client never does."""

from __future__ import annotations

import socket
import ssl
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from openmsmq.api import messages as api
from openmsmq.api.framing import FrameReader, encode_frame, encode_frames
from openmsmq.model.identity import NIL_GUID, SequenceId
from openmsmq.model.queue import AccessMode
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, decode, encode

TIMEOUT_S = 60
RECOVERABLE = 0x20


def packet(
    direct_name: str, body: bytes, *, recoverable: bool = True, transactional: bool = False
) -> bytes:
    header = UserHeader(
        NIL_GUID,
        flags=RECOVERABLE if recoverable else 0,
        destination=DirectName(direct_name),
    )
    transaction = TransactionHeader(SequenceId(0, 0), 0) if transactional else None
    return encode(UserMessage(header, MessageProperties.of(body, ""), transaction=transaction))


def body(data: bytes) -> bytes:
    message = decode(data)
    assert isinstance(message, UserMessage)
    return message.properties.body


class RawClient:
    """One connection; `call` waits for an answer, `submit` and `answer` do half of it each."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(TIMEOUT_S)
        self.socket = connection
        self._reader: FrameReader[api.Answer] = FrameReader(api.Answer)
        self._answers: dict[int, api.AnyReply] = {}
        self._next = 1

    @classmethod
    def tcp(cls, host: str, port: int, context: ssl.SSLContext | None = None) -> Self:
        connection = socket.create_connection((host, port), TIMEOUT_S)
        if context is not None:
            connection = context.wrap_socket(connection, server_hostname="localhost")
        return cls(connection)

    @classmethod
    def unix(cls, path: Path) -> Self:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        return cls(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def hello(self, token: str = "", version: int = api.PROTOCOL_VERSION) -> api.AnyReply:
        self.socket.sendall(encode_frame(api.Call(0, api.Hello(version, token))))
        return self.answer(0)

    def submit(self, *requests: api.AnyRequest) -> list[int]:
        calls = [api.Call(self._next + n, request) for n, request in enumerate(requests)]
        self._next += len(calls)
        self.socket.sendall(encode_frames(calls))
        return [call.id for call in calls]

    def answer(self, call: int) -> api.AnyReply:
        while call not in self._answers:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the server has hung up")
            self._reader.feed(data)
            for answer in self._reader.items():
                self._answers[answer.id] = answer.reply
        return self._answers.pop(call)

    def call(self, request: api.AnyRequest) -> api.AnyReply:
        return self.answer(self.submit(request)[0])

    def is_hung_up_on(self) -> bool:
        """Wait for the end of the connection; what still comes is thrown away."""
        try:
            while self.socket.recv(1 << 18):
                pass
        except ConnectionError:
            pass
        return True

    # What most tests do.

    def create(self, name: str = "orders") -> None:
        reply = self.call(api.CreateQueue(rf"private$\{name}"))
        assert isinstance(reply, api.Queues), reply

    def open(self, access: AccessMode, name: str = "orders") -> api.Opened:
        reply = self.call(api.OpenQueue(rf"private$\{name}", access))
        assert isinstance(reply, api.Opened), reply
        return reply

    def send(self, opened: api.Opened, *bodies: bytes) -> api.AnyReply:
        packets = [packet(opened.direct_name, each) for each in bodies]
        return self.call(api.Send(opened.handle, packets))

    def receive_bodies(self, opened: api.Opened, count: int = 1000) -> list[bytes]:
        reply = self.call(api.Receive(opened.handle, count))
        if isinstance(reply, api.Failed):
            return []
        assert isinstance(reply, api.Entries), reply
        return [body(entry.packet) for entry in reply.entries]


def connect(host: str, port: int, token: str = "") -> RawClient:
    """Connect and be let in."""
    client = RawClient.tcp(host, port)
    reply = client.hello(token)
    assert isinstance(reply, api.Welcome), reply
    return client


def wait_until(condition: object, within_s: float = TIMEOUT_S) -> None:
    """Look again and again whether a condition holds; fail when it does not in time."""
    assert callable(condition)
    deadline_s = time.perf_counter() + within_s
    while not condition():
        assert time.perf_counter() < deadline_s, "the condition never held"
        time.sleep(0.005)
