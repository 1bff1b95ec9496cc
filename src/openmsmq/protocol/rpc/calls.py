"""The calls of a connection: their fragments put together, and their results in order.

Only one call comes in at a time. Any number up to a limit may be under way: a call that waits for
long leaves the connection free for the one that ends its waiting. A client that has not offered
concurrent calls gets its results in the order of its calls. [C706 9.3.2, 12.6.3]
"""

from __future__ import annotations

from collections import OrderedDict

from openmsmq.model.limits import (
    RPC_CALL_MAX_BYTES,
    RPC_CALLS_MAX_COUNT,
    RPC_HELD_ANSWERS_MAX_BYTES,
    RPC_REQUEST_MAX_BYTES,
)
from openmsmq.protocol.rpc.security_contexts import Security
from openmsmq.protocol.rpc.states import Wanted
from openmsmq.wire.rpc.pdus import (
    REQUEST_BYTES,
    WHOLE,
    Fault,
    Flag,
    PduType,
    Response,
    write,
)
from openmsmq.wire.rpc.syntaxes import Syntax

_CONTEXT_MASK = 0xFF
"""Windows gives back this much of the number of a context in results, and all of it in faults."""


class Incoming:
    """A call of which fragments are missing."""

    def __init__(
        self,
        call: int,
        context: int,
        interface: Syntax,
        operation: int,
        security: Security | None,
    ) -> None:
        self.call = call
        self.context = context
        self.interface = interface
        self.operation = operation
        self.security = security
        self._parts: list[bytes] = []
        self._size = 0
        self.kept_bytes = 0

    def add(self, stub: bytes) -> bool:
        """Take the stub of a fragment; say whether that is not too much."""
        self._size += len(stub)
        part = stub[: RPC_REQUEST_MAX_BYTES - self.kept_bytes]
        if part:
            self._parts.append(part)
            self.kept_bytes += len(part)
        return self._size <= RPC_CALL_MAX_BYTES

    @property
    def stub(self) -> bytes:
        """What has come, as far as it is kept; no parameters of ours are as long."""
        return b"".join(self._parts)


class _UnderWay:
    def __init__(self, call: int, context: int, security: Security | None) -> None:
        self.call = call
        self.context = context
        self.security = security
        self.cancels = 0
        self.is_orphaned = False
        self.answer: bytes | int | None = None
        """The results, or the status of a fault, while they wait."""


class CallBook:
    """The calls that are under way, by numbers of ours."""

    def __init__(self) -> None:
        self.in_order = True
        """Whether results leave in the order of the calls."""
        self._last = 0
        self._calls: OrderedDict[int, _UnderWay] = OrderedDict()
        self._held_bytes = 0

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, call: object) -> bool:
        return call in self._calls

    @property
    def held_bytes(self) -> int:
        """How many bytes of results wait for those of earlier calls."""
        return self._held_bytes

    @property
    def is_full(self) -> bool:
        """Whether no further call is taken."""
        return len(self._calls) >= RPC_CALLS_MAX_COUNT

    def begin(self, call: int, context: int, security: Security | None) -> int:
        """Note a call; gives its number."""
        self._last += 1
        self._calls[self._last] = _UnderWay(call, context, security)
        return self._last

    def find(self, call: int) -> int | None:
        """Return our number of a call by the client's number."""
        for number, each in self._calls.items():
            if each.call == call:
                return number
        return None

    def cancel(self, number: int, *, orphaned: bool) -> bool:
        """Note that nobody waits for a call any more; say whether that is news."""
        found = self._calls[number]
        is_news = not found.cancels
        found.cancels = 1
        found.is_orphaned = found.is_orphaned or orphaned
        return is_news and found.answer is None

    def end(self, number: int, answer: bytes | int, wanted: Wanted) -> bytes:
        """Take the results of a call, or its status; return what is to be written now."""
        found = self._calls.get(number)
        if found is None or found.answer is not None:
            return b""
        found.answer = answer
        if not self.in_order:
            # Nothing waits for anything else.
            self._held_bytes += _weight(found)
            return self._written(self._calls.pop(number), wanted)
        self._held_bytes += _weight(found)
        if self._held_bytes <= RPC_HELD_ANSWERS_MAX_BYTES:
            ready = []
            for each, underway in self._calls.items():
                if underway.answer is None:
                    break
                ready.append(each)
        else:
            ready = [each for each, call in self._calls.items() if call.answer is not None]
        return b"".join(self._written(self._calls.pop(each), wanted) for each in ready)

    def _written(self, call: _UnderWay, wanted: Wanted) -> bytes:
        self._held_bytes -= _weight(call)
        if call.is_orphaned:
            return b""
        if isinstance(call.answer, int):
            fault = Fault(call.context, call.answer, call.cancels)
            return write(PduType.FAULT, call.call, fault)
        assert call.answer is not None
        return results(call.call, call.context, call.answer, call.security, call.cancels, wanted)


def _weight(call: _UnderWay) -> int:
    return len(call.answer) if isinstance(call.answer, bytes) else 0


def results(
    call: int,
    context: int,
    stub: bytes,
    security: Security | None,
    cancels: int,
    wanted: Wanted,
) -> bytes:
    """Return the fragments of the results of a call."""
    room = wanted.fragment_max - REQUEST_BYTES
    if security is not None:
        room = security.stub_room(wanted.fragment_max)
    written = []
    at = 0
    while True:
        rest = len(stub) - at
        part = stub[at : at + room]
        flags = WHOLE
        if at:
            flags &= ~Flag.FIRST
        if rest > room:
            flags &= ~Flag.LAST
        response = Response(context & _CONTEXT_MASK, part, rest, cancels)
        if security is None:
            written.append(write(PduType.RESPONSE, call, response, flags=flags))
        else:
            written.append(security.seal(call, response, flags, signs_header=wanted.signs_header))
        at += room
        if at >= len(stub):
            return b"".join(written)
