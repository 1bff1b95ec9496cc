"""The client engine: requests in, bytes out; bytes in, answers out. No I/O and no clock.

Calls are numbered, and answers come in any order. The number of calls under way is bounded. A call
can be given up: its answer is then handed to whoever gave it up, because a message that was
received for nobody must not be lost.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from openmsmq.api.framing import ApiError, FrameReader, encode_frame
from openmsmq.api.messages import (
    PROTOCOL_VERSION,
    Answer,
    AnyReply,
    AnyRequest,
    Call,
    Cancel,
    Failed,
    Hello,
    Welcome,
)
from openmsmq.client.errors import ConnectionLost, NotSent
from openmsmq.model.errors import MsmqError

CALLS_MAX_COUNT: Final = 1024
"""Calls under way on one connection."""

_HELLO: Final = 0


class EngineState(Enum):
    """How far a connection has come."""

    GREETING = "greeting"
    OPEN = "open"
    CLOSED = "closed"


class Keeper:
    """Hears of calls that were given up. This one lets their answers go."""

    def gave_up(self, request: AnyRequest) -> None:
        """Take note that nobody waits for the answer any more."""

    def keep(self, request: AnyRequest, reply: AnyReply) -> None:
        """Take the late answer."""


_NOBODY: Final = Keeper()


class ClientEngine:
    """One connection's calls. Made when the transport is connected, over when that is lost."""

    def __init__(
        self, token: str = "", calls_max: int = CALLS_MAX_COUNT, *, slates: int = 0
    ) -> None:
        self.state = EngineState.GREETING
        self.welcome: Welcome | None = None
        self._calls_max = calls_max
        self._next = _HELLO + 1
        self._under_way: dict[int, AnyRequest] = {}
        self._given_up: dict[int, Keeper] = {}
        self._reader: FrameReader[Answer] = FrameReader(Answer)
        self._output: list[bytes] = [
            encode_frame(Call(_HELLO, Hello(PROTOCOL_VERSION, token, slates)))
        ]

    @property
    def calls_under_way(self) -> int:
        """How many calls wait for their answers."""
        return len(self._under_way)

    @property
    def is_full(self) -> bool:
        """Whether another call has to wait until one is answered."""
        return len(self._under_way) >= self._calls_max

    # Inputs.

    def submit(self, request: AnyRequest) -> int:
        """Begin a call; gives its number."""
        if self.state is not EngineState.OPEN:
            raise NotSent(f"the connection is {self.state.value}, not open")
        if self.is_full:
            raise RuntimeError(f"{self._calls_max} calls are under way: wait for an answer first")
        call = self._next
        frame = encode_frame(Call(call, request))
        self._next = call + 1
        self._under_way[call] = request
        self._output.append(frame)
        return call

    def give_up(self, call: int, keeper: Keeper = _NOBODY) -> None:
        """Stop waiting for a call: it is cancelled, and its late answer goes to `keeper`."""
        if call not in self._under_way or call in self._given_up:
            return
        self._given_up[call] = keeper
        keeper.gave_up(self._under_way[call])
        cancel = self._next
        self._next += 1
        self._under_way[cancel] = Cancel(call)
        self._given_up[cancel] = _NOBODY
        self._output.append(encode_frame(Call(cancel, Cancel(call))))

    def receive_data(self, data: bytes) -> list[tuple[int, AnyReply]]:
        """Take bytes of the queue manager; give the calls they answer.

        Raises `ConnectionLost` for bytes that make no sense, and the queue manager's own error
        when it refuses the connection; both end the connection.
        """
        self._reader.feed(data)
        return self._answered()

    def room(self) -> memoryview | None:
        """Return the place for the rest of a large answer that has begun; None if none has."""
        return self._reader.room()

    def room_filled(self, count: int) -> list[tuple[int, AnyReply]]:
        """Take bytes of the queue manager that are in `room`, as `receive_data` takes others."""
        self._reader.filled(count)
        return self._answered()

    def _answered(self) -> list[tuple[int, AnyReply]]:
        answered: list[tuple[int, AnyReply]] = []
        try:
            for answer in self._reader.items():
                self._take(answer, answered)
        except ApiError as error:
            self.state = EngineState.CLOSED
            raise ConnectionLost(f"the queue manager sent {error}") from None
        return answered

    def connection_lost(self) -> list[int]:
        """Take the end of the transport; give the calls that will never be answered."""
        self.state = EngineState.CLOSED
        lost = [call for call in self._under_way if call not in self._given_up]
        self._under_way.clear()
        self._given_up.clear()
        self._output.clear()
        return lost

    # Outputs.

    def data_to_send(self) -> bytes:
        """Return the bytes that are due, once."""
        output = self._output
        if len(output) == 1:
            return output.pop()
        data = b"".join(output)
        output.clear()
        return data

    # Internals.

    def _take(self, answer: Answer, answered: list[tuple[int, AnyReply]]) -> None:
        if self.state is not EngineState.OPEN:
            self._greeted(answer)
            return
        request = self._under_way.pop(answer.id, None)
        if request is None:
            raise ApiError(f"an answer to call {answer.id}, which nobody has made")
        if not self._given_up or answer.id not in self._given_up:
            answered.append((answer.id, answer.reply))
            return
        self._given_up.pop(answer.id).keep(request, answer.reply)

    def _greeted(self, answer: Answer) -> None:
        reply = answer.reply
        if isinstance(reply, Failed):
            self.state = EngineState.CLOSED
            raise MsmqError.from_code(reply.code, reply.detail)
        if answer.id != _HELLO or not isinstance(reply, Welcome):
            raise ApiError(f"{type(reply).__name__} where a welcome was due")
        self.welcome = reply
        self.state = EngineState.OPEN
