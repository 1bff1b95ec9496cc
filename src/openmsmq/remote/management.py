"""Calls of managing programs as requests of the application interface. [MQMR 3.1]

Methods never end with a fault of ours, but for what is no call at all (M-4). Who may do what is up
to the requests: to look needs the right to see properties, to act the right to administer (M-5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from openmsmq.api import messages as api
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources, InvalidParameter, QueueNotFound
from openmsmq.model.names import IllegalName
from openmsmq.model.queue import QueueRole
from openmsmq.remote import properties
from openmsmq.remote.faults import BAD_OPERATION, BAD_STUB, ILLEGAL_PROPERTY, code_of
from openmsmq.remote.ports import Ask, Output, Return, Throw
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.rpc import management as rpc
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.variants import Variant

_Then: TypeAlias = Callable[[api.AnyReply, Instant], list[Output]]

_OUTGOING_ACTIONS: Final = {"PAUSE": "pause", "RESUME": "resume", "EOD_RESEND": "resend"}
_MACHINE_ACTIONS: Final[dict[str, api.AnyRequest]] = {
    "CONNECT": api.SetOnline(True),
    "DISCONNECT": api.SetOnline(False),
    # The store gives room back by itself, and to purge all queues, as the text has it, would lose
    # every message (M-1): what is left of it is that only administrators may ask for it.
    "TIDY": api.GetBackup(),
}


class Management:
    """Answers the calls of one managing program; `computer` is the name of ours."""

    def __init__(self, computer: str) -> None:
        self._computer = computer
        self._number = 0
        self._asked: dict[int, _Then] = {}

    def called(self, call: int, operation: int, stub: bytes, now: Instant) -> list[Output]:
        """Take a call."""
        del now
        try:
            if operation == rpc.Operation.GET_INFO:
                return self._get_info(call, rpc.GET_INFO.decode(stub))
            if operation == rpc.Operation.ACTION:
                return self._act(call, rpc.ACTION.decode(stub))
        except DecodeError:
            return [Throw(call, BAD_STUB)]
        return [Throw(call, BAD_OPERATION)]

    def answered(self, number: int, reply: api.AnyReply, now: Instant) -> list[Output]:
        """Take the queue manager's reply."""
        then = self._asked.pop(number, None)
        return [] if then is None else then(reply, now)

    def cancelled(self, call: int, now: Instant) -> list[Output]:
        """Do nothing: no call waits here for anything but an answer."""
        del call, now
        return []

    @property
    def next_wake_ms(self) -> int | None:
        """Nothing is ever due."""
        return None

    def wake(self, now: Instant) -> list[Output]:
        """Do nothing."""
        del now
        return []

    # Information.

    def _get_info(self, call: int, request: rpc.GetInfo) -> list[Output]:
        wanted = request.properties
        if len(set(wanted)) < len(wanted):
            # The same list of all queues a hundred times would be a long answer to a short call.
            return [_refused(call, request, InvalidParameter.code)]
        if request.target.kind == rpc.ObjectType.MACHINE:
            if not all(number in properties.MACHINE_PROPERTIES for number in wanted):
                return [_refused(call, request, ILLEGAL_PROPERTY)]
            return self._ask_machine(call, request)
        name = _name_of(request.target)
        if name is None:
            return [_refused(call, request, InvalidParameter.code)]
        if not all(number in properties.QUEUE_PROPERTIES for number in wanted):
            return [_refused(call, request, ILLEGAL_PROPERTY)]
        then = partial(self._after_queue, call, request, name)
        return [self._ask(api.GetQueue(name), then)]

    def _ask_machine(self, call: int, request: rpc.GetInfo) -> list[Output]:
        wanted = frozenset(request.properties)
        asked: list[api.AnyRequest] = []
        if wanted & properties.NEEDS_STATUS:
            asked.append(api.GetStatus())
        if wanted & properties.NEEDS_QUEUES:
            asked.append(api.ListQueues(everything=True))
        if wanted & properties.NEEDS_OUTGOING:
            asked.append(api.ListOutgoing())
        return self._ask_all(asked, partial(_machine_info, self._computer, call, request))

    def _after_queue(
        self, call: int, request: rpc.GetInfo, name: str, reply: api.AnyReply, _: Instant
    ) -> list[Output]:
        if isinstance(reply, api.Queues):
            local = properties.Local(self._computer, reply.queues[0], [])
            if not properties.NEEDS_SUBQUEUES & frozenset(request.properties):
                return [_local_info(call, request, local)]
            then = partial(_subqueue_info, call, request, local)
            return [self._ask(api.ListQueues(everything=True), then)]
        # It may lead to another computer: of those the queue manager tells separately.
        then = partial(_outgoing_info, call, request, code_of(reply))
        return [self._ask(api.ListOutgoing(name), then)]

    # Actions.

    def _act(self, call: int, request: rpc.Action) -> list[Output]:
        action = (request.action or "").upper()
        if request.target.kind == rpc.ObjectType.MACHINE:
            asked = _MACHINE_ACTIONS.get(action)
        else:
            name = _name_of(request.target)
            word = _OUTGOING_ACTIONS.get(action)
            asked = None if name is None or word is None else api.ControlOutgoing(name, word)
        if asked is None:
            return [_done(call, InvalidParameter.code)]
        return [self._ask(asked, lambda reply, _: [_done(call, code_of(reply))])]

    # Tools.

    def _ask(self, request: api.AnyRequest, then: _Then) -> Ask:
        self._number += 1
        self._asked[self._number] = then
        return Ask(self._number, request)

    def _ask_all(
        self,
        requests: Sequence[api.AnyRequest],
        then: Callable[[Sequence[api.AnyReply]], list[Output]],
    ) -> list[Output]:
        """Ask for several things; go on when all are answered."""
        replies: dict[int, api.AnyReply] = {}

        def one(index: int, reply: api.AnyReply, _: Instant) -> list[Output]:
            replies[index] = reply
            if len(replies) < len(requests):
                return []
            return then([replies[number] for number in range(len(requests))])

        return [self._ask(request, partial(one, index)) for index, request in enumerate(requests)]


def _name_of(target: rpc.ManagedObject) -> str | None:
    """Return the name of the queue that is managed; None if there is none that could be."""
    if target.kind != rpc.ObjectType.QUEUE or not isinstance(target.target, QueueFormat):
        return None
    try:
        return str(target.target.name())
    except IllegalName:
        return None


def _machine_info(
    computer: str, call: int, request: rpc.GetInfo, replies: Sequence[api.AnyReply]
) -> list[Output]:
    status: api.Status | None = None
    queues: list[api.QueueStatus] = []
    outgoing: list[api.OutgoingStatus] = []
    for reply in replies:
        if isinstance(reply, api.Status):
            status = reply
        elif isinstance(reply, api.Queues):
            queues = reply.queues
        elif isinstance(reply, api.OutgoingQueues):
            outgoing = reply.queues
        else:
            return [_refused(call, request, code_of(reply))]
    machine = properties.Machine(computer, status, queues, outgoing)
    return [
        _told(
            call,
            request,
            [properties.MACHINE_PROPERTIES[number](machine) for number in request.properties],
        )
    ]


def _local_info(call: int, request: rpc.GetInfo, local: properties.Local) -> Return:
    return _told(
        call, request, [properties.of_local(number, local) for number in request.properties]
    )


def _subqueue_info(
    call: int, request: rpc.GetInfo, local: properties.Local, reply: api.AnyReply, _: Instant
) -> list[Output]:
    if not isinstance(reply, api.Queues):
        return [_refused(call, request, code_of(reply))]
    start = f"{local.queue.path_name};"
    names = [
        other.path_name[len(start) :]
        for other in reply.queues
        if other.kind == QueueRole.SUBQUEUE.value and other.path_name.startswith(start)
    ]
    return [_local_info(call, request, properties.Local(local.computer, local.queue, names))]


def _outgoing_info(
    call: int, request: rpc.GetInfo, code: int, reply: api.AnyReply, _: Instant
) -> list[Output]:
    if not isinstance(reply, api.OutgoingQueues) or not reply.queues:
        return [_refused(call, request, code or QueueNotFound.code)]
    outgoing = reply.queues[0]
    return [
        _told(
            call,
            request,
            [properties.of_outgoing(number, outgoing) for number in request.properties],
        )
    ]


def _told(call: int, request: rpc.GetInfo, values: Sequence[Variant]) -> Return:
    try:
        return Return(call, rpc.INFO.encode(rpc.Info(tuple(values), 0)))
    except EncodeError:
        # More queues than a vector has elements: there is no answer that would be true.
        return _refused(call, request, InsufficientResources.code)


def _refused(call: int, request: rpc.GetInfo, code: int) -> Return:
    """Answer with an error; the values are as they came. [MQMR 3.1.4.1]"""
    return Return(call, rpc.INFO.encode(rpc.Info(request.values, code)))


def _done(call: int, code: int) -> Return:
    return Return(call, rpc.DONE.encode(rpc.Done(code)))
