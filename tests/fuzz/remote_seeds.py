"""Where the targets of remote procedure calls start from: stubs of every method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from openmsmq.model.identity import NIL_GUID
from openmsmq.wire.rpc import management, remote_read
from openmsmq.wire.rpc.message_packets import write
from openmsmq.wire.rpc.queue_format import ObjectId, QueueFormat
from openmsmq.wire.rpc.remote_read import Operation, Standing
from openmsmq.wire.rpc.variants import NULL, Variant
from tests.fuzz.remote_targets import STUBS
from tests.strategies.messages import Draft

CONTEXT: Final = bytes(20)
NAMES: Final = (
    QueueFormat(3, 0, 0, r"OS:ALPHA\private$\orders"),
    QueueFormat(8, 5, 0, r"OS:ALPHA\private$\orders;later"),
    QueueFormat(4, 0x82, 0, NIL_GUID),
    QueueFormat(2, 0, 0, ObjectId(NIL_GUID, 7)),
    QueueFormat(1, 0x81, 0, NIL_GUID),
)
RECEIVE: Final = (CONTEXT, 0, 0, 0, 0, 1, 9, 9)
MACHINE: Final = management.ManagedObject(1, 0)
READING: Final = {
    Operation.GET_SERVER_PORT: [b""],
    Operation.OPEN_QUEUE: [
        remote_read.OPEN_QUEUE.encode(remote_read.OpenQueue(name, 1, 0, NIL_GUID, 1, 6, 1, 7600, 1))
        for name in NAMES
    ],
    Operation.OPEN_QUEUE_FOR_MOVE: [
        remote_read.OPEN_QUEUE.encode(
            remote_read.OpenQueue(NAMES[1], 4, 0, NIL_GUID, 1, 6, 1, 7600, 1)
        )
    ],
    Operation.START_RECEIVE: [remote_read.START_RECEIVE.encode(remote_read.StartReceive(*RECEIVE))],
    Operation.START_TRANSACTIONAL_RECEIVE: [
        remote_read.START_TRANSACTIONAL_RECEIVE.encode(
            remote_read.StartTransactionalReceive(*RECEIVE, bytes(16))
        )
    ],
    Operation.END_RECEIVE: [remote_read.END_RECEIVE.encode(remote_read.EndReceive(CONTEXT, 2, 1))],
    Operation.ENLIST_REMOTE_TRANSACTION: [
        remote_read.ENLIST_REMOTE_TRANSACTION.encode(
            remote_read.EnlistRemoteTransaction(bytes(16), b"token", NAMES[0])
        )
    ],
    Operation.MOVE_MESSAGE: [
        remote_read.MOVE_MESSAGE.encode(remote_read.MoveMessage(CONTEXT, 1, 2, bytes(16)))
    ],
}
MANAGING: Final = {
    0: [
        management.GET_INFO.encode(
            management.GetInfo(target, (1, 2, 4), (NULL, Variant(31, "text"), NULL))
        )
        for target in (MACHINE, management.ManagedObject(2, NAMES[0]))
    ],
    1: [
        management.ACTION.encode(management.Action(MACHINE, "TIDY")),
        management.ACTION.encode(management.Action(management.ManagedObject(2, NAMES[0]), "PAUSE")),
    ],
}
RESULTS: Final = (
    remote_read.RECEIVED.encode(
        remote_read.Received(1, 2, (remote_read.Section(0, 4, b"data"),), 0)
    ),
    management.INFO.encode(
        management.Info((Variant(0x101F, ("a", "b")), Variant(0x100C, (NULL,))), 0)
    ),
)


def _stubs() -> list[bytes]:
    given = [*RESULTS, *(stub for found in READING.values() for stub in found)]
    given += [stub for found in MANAGING.values() for stub in found]
    return [bytes([number]) + stub for number in range(len(STUBS)) for stub in given]


def _calls() -> list[bytes]:
    reading = [bytes([1, op]) + stub for op, found in READING.items() for stub in found]
    return reading + [bytes([0, op]) + stub for op, found in MANAGING.items() for stub in found]


def _messages() -> list[bytes]:
    drafts = (Draft(), Draft(dead_letter_queue=r"a\q"), Draft(transactional=True))
    return [write(draft.packet(), Standing(1, 2, 3, "later")) for draft in drafts]


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "stubs": _stubs,
    "remote-messages": _messages,
    "remote-calls": _calls,
}
