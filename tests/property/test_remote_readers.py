"""Remote readers beside a simple model: nothing is lost, nothing stays locked for ever.

Readers open, read, acknowledge, give back, cancel, close and die in any order, while time passes
and messages come. The model knows of each message whether it is there, whether somebody has it, or
whether it was taken. A message that somebody had for five minutes without a word is there for
others again (R-12), and in no other case has anybody a message that another has, too.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from openmsmq.model.limits import REMOTE_RECEIVE_MS
from openmsmq.wire.rpc.remote_read import Action, Verdict
from tests.sim.mutants import Mutant, applied
from tests.unit.remote.doors import Hall, Reader, body

FOREVER = 0xFFFF_FFFF
READERS = 3


class Held:
    """A message that a reader has."""

    def __init__(self, reader: int, context: bytes, request: int, since_ms: int) -> None:
        self.reader = reader
        self.context = context
        self.request = request
        self.since_ms = since_ms


class RemoteReaders(RuleBasedStateMachine):
    """Readers, a queue, and what is known of each message."""

    def __init__(self) -> None:
        super().__init__()
        self.hall = Hall()
        self.sent = 0
        self.requests = 0
        self.there: list[bytes] = []
        self.held: dict[bytes, Held] = {}
        self.taken: set[bytes] = set()
        self.readers: dict[int, Reader] = {}
        self.contexts: dict[int, list[bytes]] = {}
        self.waiting: dict[int, tuple[int, bytes, int]] = {}
        """Calls that wait, oldest first: whose, through which handle, under which request."""
        self.calls = 0

    # What happens.

    @initialize()
    def begin(self) -> None:
        for number in range(READERS):
            self._come(number)

    def _come(self, number: int) -> None:
        self.readers[number] = self.hall.reader()
        self.contexts[number] = [self.readers[number].open()]

    @rule(count=st.integers(1, 3))
    def messages_come(self, count: int) -> None:
        for _ in range(count):
            self.sent += 1
            name = b"%d" % self.sent
            self.hall.send(name)
            self.there.append(name)
            self.hall.settle()
            self._serve()

    @rule(number=st.integers(0, READERS - 1))
    def somebody_opens(self, number: int) -> None:
        if len(self.contexts[number]) < 3:
            self.contexts[number].append(self.readers[number].open())

    @rule(number=st.integers(0, READERS - 1), which=st.integers(0, 2), waits=st.booleans())
    def somebody_reads(self, number: int, which: int, waits: bool) -> None:
        context = self._context(number, which)
        if context is None:
            return
        self.requests += 1
        reader = self.readers[number]
        timeout_ms = FOREVER if waits else 0
        call = reader.begin_receive(context, self.requests, timeout_ms=timeout_ms)
        self.hall.settle()
        received = reader.received(call)
        if received is None:
            assert waits
            assert not self.there
            self.calls += 1
            self.waiting[call + number * 1_000_000] = (number, context, self.requests)
        elif received.result:
            assert not waits
            assert not self.there
        else:
            self._has(body(received), number, context, self.requests)

    @rule(number=st.integers(0, READERS - 1), which=st.integers(0, 2))
    def somebody_looks(self, number: int, which: int) -> None:
        context = self._context(number, which)
        if context is None:
            return
        received = self.readers[number].receive(
            context, 0, action=Action.PEEK_CURRENT, timeout_ms=0
        )
        assert (received.result == 0) is bool(self.there)
        if not received.result:
            assert body(received) == self.there[0]

    @rule(data=st.data(), verdict=st.sampled_from(Verdict))
    @precondition(lambda self: self.held)
    def somebody_ends(self, data: st.DataObject, verdict: Verdict) -> None:
        name = data.draw(st.sampled_from(sorted(self.held)))
        held = self.held.pop(name)
        assert self.readers[held.reader].end(held.context, verdict, held.request) == 0
        if verdict is Verdict.ACK:
            self.taken.add(name)
        else:
            self._back(name)

    @rule(data=st.data())
    @precondition(lambda self: self.waiting)
    def somebody_cancels(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.waiting)))
        number, context, request = self.waiting.pop(key)
        assert self.readers[number].cancel(context, request) == 0
        received = self.readers[number].received(key - number * 1_000_000)
        assert received is not None
        assert received.result == 0xC00E0008

    @rule(number=st.integers(0, READERS - 1), which=st.integers(0, 2))
    def somebody_closes(self, number: int, which: int) -> None:
        context = self._context(number, which)
        if context is None:
            return
        self.contexts[number].remove(context)
        self._forget(lambda reader, found: reader == number and found == context)
        assert self.readers[number].close(context).result == 0
        self._serve()

    @rule(number=st.integers(0, READERS - 1))
    def somebody_dies(self, number: int) -> None:
        self._forget(lambda reader, _: reader == number)
        self.readers[number].die()
        self._come(number)
        self._serve()

    @rule(seconds=st.sampled_from([1, 60, 200, 299, 300]))
    def time_passes(self, seconds: int) -> None:
        self.hall.pass_time(seconds)
        now_ms = self.hall.driver.now.ticks_ms
        for name, held in sorted(self.held.items()):
            if held.since_ms + REMOTE_RECEIVE_MS <= now_ms:
                del self.held[name]
                self._back(name, serve=False)
        self._serve()

    # What must be so.

    @invariant()
    def every_message_is_where_the_model_has_it(self) -> None:
        assert self.hall.bodies() == self.there

    def teardown(self) -> None:
        """Let everybody go: what was not taken is there, once."""
        if not self.readers:
            return
        for reader in self.readers.values():
            reader.die()
        left = sorted(self.hall.bodies())
        everything = {b"%d" % number for number in range(1, self.sent + 1)}
        assert left == sorted(everything - self.taken)

    # The model.

    def _context(self, number: int, which: int) -> bytes | None:
        contexts = self.contexts[number]
        return contexts[which % len(contexts)] if contexts else None

    def _has(self, name: bytes, number: int, context: bytes, request: int) -> None:
        assert name not in self.held, "two readers have one message"
        assert name not in self.taken, "a message that was taken came again"
        assert self.there
        assert self.there[0] == name, "messages come in their order"
        self.there.pop(0)
        now_ms = self.hall.driver.now.ticks_ms
        self.held[name] = Held(number, context, request, now_ms)

    def _back(self, name: bytes, *, serve: bool = True) -> None:
        self.there = sorted([*self.there, name], key=int)
        if serve:
            self._serve()

    def _forget(self, is_mine: Any) -> None:
        """Give back what is held, and wait no more, without anybody being served yet."""
        for key, (number, context, _) in list(self.waiting.items()):
            if is_mine(number, context):
                del self.waiting[key]
        for name, held in list(self.held.items()):
            if is_mine(held.reader, held.context):
                del self.held[name]
                self._back(name, serve=False)

    def _serve(self) -> None:
        """See who of those that wait has got a message: the oldest first, each of them one."""
        for key, (number, context, request) in list(self.waiting.items()):
            received = self.readers[number].received(key - number * 1_000_000)
            if received is None:
                continue
            del self.waiting[key]
            assert received.result == 0, f"{received.result:#x}"
            name = body(received)
            assert name in self.there
            self.there.remove(name)
            self.held[name] = Held(number, context, request, self.hall.driver.now.ticks_ms)
        assert not (self.waiting and self.there), "somebody waits beside a message"


SETTINGS = settings(
    deadline=None,
    stateful_step_count=30,
    max_examples=60,
    suppress_health_check=list(HealthCheck),
)
TestRemoteReaders = RemoteReaders.TestCase
TestRemoteReaders.settings = SETTINGS


READ = "remote.remote_read:RemoteRead"
DEFECTS = [
    Mutant(
        "what nobody speaks of is never given back",
        f"{READ}.wake",
        "if due_ms > now.ticks_ms:",
        "if True:",
    ),
    Mutant(
        "what somebody has is given back too early",
        f"{READ}._keep",
        "now.ticks_ms + REMOTE_RECEIVE_MS",
        "now.ticks_ms + REMOTE_RECEIVE_MS // 2",
    ),
    Mutant(
        "what is given back is taken out",
        f"{READ}._end",
        "request.verdict == rpc.Verdict.ACK",
        "True",
    ),
    Mutant(
        "what is acknowledged is given back",
        f"{READ}._end",
        "request.verdict == rpc.Verdict.ACK",
        "False",
    ),
    Mutant(
        "a message is taken out before its reader has it",
        "remote.readings:read_request",
        "lock=request.action not in _PEEKS",
        "lock=False",
    ),
    Mutant(
        "who only looks takes",
        "remote.readings:read_request",
        "peek=request.action in _PEEKS",
        "peek=False",
    ),
    Mutant(
        "a message of which was spoken goes back all the same",
        f"{READ}._end",
        "del self._due[queue.context, request.request]",
        "pass",
    ),
    Mutant(
        "a closed handle's time goes on",
        f"{READ}._close",
        "self._due.pop((queue.context, number), None)",
        "pass",
    ),
    Mutant(
        "a closed handle keeps its messages",
        f"{READ}._close",
        "api.CloseQueue(queue.handle)",
        "api.GetCaller()",
    ),
    Mutant(
        "a read that was cancelled goes on",
        f"{READ}._cancel",
        "api.Cancel(number)",
        "api.GetCaller()",
    ),
    Mutant(
        "a message that a reader has is forgotten",
        f"{READ}._after_read",
        "self._keep(queue, request.request, entry.lookup_id, now)",
        "pass",
    ),
]
NOTICING = settings(
    SETTINGS,
    max_examples=300,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_planted_defect_is_noticed(defect: Mutant) -> None:
    with applied(defect), pytest.raises((AssertionError, KeyError)):
        run_state_machine_as_test(RemoteReaders, settings=NOTICING)
