"""Defects of remote reading that the simulator must notice: traps of the specification, and kin."""

from __future__ import annotations

from openmsmq.sim.scenarios.scenario import Options
from tests.sim.mutants import Mutant

_READ = "remote.remote_read:RemoteRead"


def _reading(*readings: str) -> Options:
    return Options(remote_readers=True, managers=1, readings=readings)


REMOTE_MUTANTS = (
    # What is said of a message.
    Mutant(
        "what is given back is taken out",
        f"{_READ}._end",
        "request.verdict == rpc.Verdict.ACK",
        "True",
        options=_reading("take"),
        likely=1,
    ),
    Mutant(
        "what is taken out is given back",
        f"{_READ}._end",
        "request.verdict == rpc.Verdict.ACK",
        "False",
        options=_reading("take"),
        likely=1,
    ),
    Mutant(
        "who says again that he takes a message takes the next one, too",
        f"{_READ}._end",
        "    if lookup_id is None:\n"
        "        return [result(call, queue.problem_to_end(request.request))]\n"
        "    del self._due[queue.context, request.request]\n",
        "    if lookup_id is None and queue.received:\n"
        "        other, lookup_id = queue.received.popitem()\n"
        "        del self._due[queue.context, other]\n"
        "    elif lookup_id is None:\n"
        "        return [result(call, queue.problem_to_end(request.request))]\n"
        "    else:\n"
        "        del self._due[queue.context, request.request]\n",
        options=_reading("repeat", "forget"),
        likely=3,
    ),
    Mutant(
        "a reader hears that it has taken a message before the disk has that",
        "manager.reading.locks:ReadLocks.end",
        "self._replies.answer_when_done(state.id, call, api.Done())",
        "self._replies.answer(state.id, call, api.Done())",
        options=_reading("take"),
        likely=3,
    ),
    Mutant(
        "what a full disk has not let go is forgotten",
        f"{_READ}._after_end",
        "if not code or code in _LOCK_IS_GONE or queue.context not in self._queues:",
        "if True:",
        options=Options(remote_readers=True, managers=1, readings=("take",), only=("disk full",)),
        likely=1,
    ),
    # Time.
    Mutant(
        "what goes back after five minutes is found by the wrong number",
        f"{_READ}.wake",
        "queue.received.pop(request)",
        "(queue.received.pop(request), request)[1]",
        options=_reading("forget"),
        likely=1,
    ),
    Mutant(
        "what nobody speaks of never goes back",
        f"{_READ}._keep",
        "now.ticks_ms + REMOTE_RECEIVE_MS",
        "now.ticks_ms + 1_000 * REMOTE_RECEIVE_MS",
        options=_reading("forget"),
        likely=3,
    ),
    Mutant(
        "what somebody has goes back too early",
        f"{_READ}._keep",
        "now.ticks_ms + REMOTE_RECEIVE_MS",
        "now.ticks_ms + 500",
        options=_reading("take"),
        likely=3,
    ),
    Mutant(
        "what was spoken of goes back all the same when its time is over",
        f"{_READ}._end",
        "del self._due[queue.context, request.request]",
        "pass",
        options=_reading("take", "forget"),
        likely=1,
    ),
    Mutant(
        "nobody waits for a message",
        "remote.readings:read_request",
        "timeout_ms = None if request.timeout_ms == INFINITE_MS else request.timeout_ms",
        "timeout_ms = 0",
        options=_reading("wait"),
        likely=0,
    ),
    # Who somebody is, and what comes on the way.
    Mutant(
        "whoever has no password is believed all the same",
        "security.authentication.ntlm.acceptor:NtlmAcceptor._session_key",
        "return session_key if is_right else None",
        "return session_key",
        options=_reading("take", "impostor"),
        likely=9,
    ),
    Mutant(
        "whoever does not say who he is may call",
        "protocol.rpc.association:Association._may_call",
        "if minimum is Level.NONE:",
        "if True:",
        options=_reading("take", "impostor"),
        likely=1,
    ),
    Mutant(
        "a call that was changed on its way is carried out",
        "security.authentication.ntlm.protection:Protection._judge",
        "self._dead or not hmac.compare_digest(expected, signature)",
        "self._dead",
        options=_reading("take", "spoil"),
        likely=10,
    ),
    # Purges.
    Mutant(
        "a purge from elsewhere leaves everything where it is",
        f"{_READ}._purge",
        "api.Purge(queue.handle)",
        "api.GetCaller()",
        options=_reading("take", "purge"),
        likely=2,
    ),
    Mutant(
        "a purge removes what a reader has",
        "manager.messages.housekeeping:Housekeeping._next_slice",
        "if lookup_id not in held:",
        "if True:",
        options=_reading("take", "purge"),
        likely=23,
    ),
    Mutant(
        "what was purged while a reader had it comes back",
        "manager.reading.locks:ReadLocks._unlock",
        "queue.entries.doom_of(lookup_id) is not None and",
        "False and",
        options=_reading("take", "forget", "purge"),
        likely=2,
    ),
    Mutant(
        "who has purged a queue hears so before the disk has that",
        "manager.messages.housekeeping:Housekeeping._slice",
        "self._ledger.add_waiting(SliceRemoved(self, job, is_last=not more))",
        "job.finished(job.removed)",
        options=_reading("purge"),
        likely=3,
    ),
    Mutant(
        "who may only look may purge",
        f"{_READ}._purge",
        "queue.access is not AccessMode.RECEIVE",
        "queue.access is AccessMode.MOVE",
        options=_reading("purge"),
        likely=0,
    ),
    Mutant(
        "who may only look may take",
        "manager.reading.requests:ReadRequests.require_readable",
        "(not peek and not takes)",
        "False",
        options=_reading("take", "purge"),
        likely=0,
    ),
    # Reads that nobody waits for.
    Mutant(
        "a read that was given up keeps what it was about to bring",
        f"{_READ}._after_read",
        "return [self._give_back(queue, entry.lookup_id), cancelled]",
        "return [cancelled]",
        options=_reading("cancel", "orphan"),
        likely=1,
    ),
    Mutant(
        "a read that was cancelled goes on",
        f"{_READ}._cancel",
        "api.Cancel(number)",
        "api.GetCaller()",
        options=_reading("cancel"),
        likely=1,
    ),
    Mutant(
        "a call that was orphaned waits on",
        "remote.conversation:Conversation._do",
        "clerk.cancel(self, call)",
        "pass",
        options=_reading("orphan"),
        likely=1,
    ),
    # Who is gone, and what is closed.
    Mutant(
        "a closed handle keeps its messages",
        "manager.reading.locks:ReadLocks.release",
        "self._unlock(state, opened.queue, lookup_id)",
        "pass",
        options=_reading("take", "close"),
        likely=3,
    ),
    Mutant(
        "a handle is closed for the reader only",
        f"{_READ}._close",
        "api.CloseQueue(queue.handle)",
        "api.GetCaller()",
        options=_reading("take", "wait", "close"),
        likely=3,
    ),
    Mutant(
        "a queue is closed, and the reads of it wait on",
        "manager.requests.opening:OpenRequests.close_queue",
        "if read.opened is opened:",
        "if False:",
        options=_reading("wait", "close", "die"),
        likely=12,
    ),
    Mutant(
        "who is gone keeps what it had",
        "remote.conversation:Conversation.lost",
        "self._desk.end(ended.group, ended.caller)",
        "pass",
        options=_reading("take", "forget", "leave"),
        likely=0,
    ),
    Mutant(
        "one lost connection ends what others share with it",
        "protocol.rpc.groups:Groups.left",
        "if not through:",
        "if True:",
        options=_reading("take", "wait"),
        likely=3,
    ),
    # What is read.
    Mutant(
        "a message is taken out before its reader has it",
        "remote.readings:read_request",
        "lock=request.action not in _PEEKS",
        "lock=False",
        options=_reading("take"),
        likely=1,
    ),
    Mutant(
        "what is looked up is taken out before its reader has it",
        "remote.readings:read_request",
        "lock=not peek",
        "lock=False",
        options=_reading("take", "peek", "lookup"),
        likely=1,
    ),
    Mutant(
        "who only looks takes",
        "remote.readings:read_request",
        "peek=request.action in _PEEKS",
        "peek=False",
        options=_reading("peek"),
        likely=1,
    ),
    Mutant(
        "pieces of a call are put together backwards",
        "protocol.rpc.calls:Incoming.add",
        "self._parts.append(part)",
        "self._parts.insert(0, part)",
        options=_reading("take"),
        likely=1,
    ),
)
