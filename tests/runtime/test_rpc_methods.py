"""Every method of remote reading and management, called by clients that are not ours, and by ours.

The queue manager is a process. The table at the end fails when a method has no such test.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import pytest
from impacket.dcerpc.v5 import rpcrt
from impacket.uuid import uuidtup_to_bin

from openmsmq.client.blocking import Queue
from openmsmq.client.blocking import QueueManager as Application
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from tests.runtime.computers import Computer, running, wait_for
from tests.runtime.remote_client import (
    ADMINISTRATOR,
    MANAGEMENT,
    PASSWORD,
    connect,
    free_address,
    why_not,
)
from tests.runtime.rpc_peers import Fault, Impacket, Name, Ours, Peer, Scapy, manager, reader
from tests.runtime.scripted_engine import free_port

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

READING: Final = {0, *range(2, 16)}
"""The methods of RemoteRead; 1 is not used. [MQRR 3.1.4]"""
MANAGING: Final = {0, 1}
"""The methods of qmmgmt. [MQMR 3.1.4]"""
READERS: Final = (Impacket, Scapy, Ours)
MANAGERS: Final = (Impacket, Ours)
"""Not scapy: it aligns no variants, and sends an action of one character."""

RECEIVE, PEEK, MOVE = 1, 0x20, 4
ACK, NACK = 2, 1
TAKE, LOOK, LOOK_NEXT = 0, 0x8000_0000, 0x8000_0001
WHOLE: Final = 0xFFFF_FFFF
NO_UNIT, UNIT = bytes(16), bytes(range(16))
CLIENT: Final = bytes(range(16, 32))
MISMATCH: Final = 0x1C00_001A
PORT: Final = 2103

INVALID_PARAMETER: Final = 0xC00E_0006
INVALID_HANDLE: Final = 0xC00E_0007
ACCESS_DENIED: Final = 0xC000_0022
TRANSACTION_USAGE: Final = 0xC00E_0050
TRANSACTION_SEQUENCE: Final = 0xC00E_0051
TRANSACTION_ENLIST: Final = 0xC00E_0058
MESSAGE_NOT_FOUND: Final = 0xC00E_0088
NO_CURSOR: Final = 0xC000_0008

Test = TypeVar("Test", bound=Callable[..., None])
DRIVEN: Final[dict[str, set[int]]] = {"reader": set(), "manager": set()}


def drives(*operations: int, of: str = "reader") -> Callable[[Test], Test]:
    """Say which methods a test calls; that it does is looked at when it ends."""

    def said(test: Test) -> Test:
        DRIVEN[of].update(operations)
        test.__dict__["drives"] = set(operations)
        return test

    return said


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Computer]:
    folder = tmp_path_factory.mktemp("methods")
    address = free_address()
    found = Computer(folder, "ALPHA", address, free_port(address, "127.0.0.9"))
    found.data.mkdir(mode=0o700)
    add_account(found.data / ACCOUNTS_FILE, ADMINISTRATOR, PASSWORD, administrator=True, now_s=0)
    found.configure("[rpc]\nenabled = true\n")
    with running(found):
        yield found


@pytest.fixture(scope="module")
def application(computer: Computer) -> Iterator[Application]:
    with computer.connect() as connected:
        yield connected


@pytest.fixture(params=READERS, ids=lambda kind: kind.__name__.lower())
def peer(request: pytest.FixtureRequest, computer: Computer) -> Iterator[Peer]:
    assert computer.is_running
    with reader(request.param, PORT) as found:
        yield found
        assert request.function.drives <= found.called


@pytest.fixture(params=MANAGERS, ids=lambda kind: kind.__name__.lower())
def program(request: pytest.FixtureRequest, computer: Computer) -> Iterator[Peer]:
    assert computer.is_running
    with manager(request.param, PORT) as found:
        yield found
        assert request.function.drives <= found.called


_NUMBERS: Final = itertools.count(1)


@pytest.fixture
def queue(application: Application) -> Queue:
    return application.create_queue(rf"private$\orders{next(_NUMBERS)}")


def named(queue: Queue, subqueue: str = "") -> Name:
    """The name of a queue of ours as a call has it."""
    path = queue.name.partition(":")[2].partition("\\")[2] if ":" in queue.name else queue.name
    text = rf"OS:ALPHA\{path}"
    return (8, 5, f"{text};{subqueue}") if subqueue else (3, 0, text)


def opened(peer: Peer, name: Name, access: int = RECEIVE) -> bytes:
    (context,) = peer.call(2, name, access, 0, CLIENT, 1, 6, 1, 7600, 1)
    assert isinstance(context, bytes)
    return context


def read(
    peer: Peer, context: bytes, request: int = 1, action: int = TAKE, cursor: int = 0
) -> list[Any]:
    return peer.call(7, context, 0, cursor, action, 0, request, WHOLE, WHOLE)


def body_in(found: list[Any]) -> str:
    """The text at the end of the packet of a message."""
    arrived, _, sections, status = found
    assert status == 0
    assert arrived > 1_500_000_000
    ((kind, size_alloc, data),) = sections
    assert (kind, size_alloc) == (0, len(data))
    (word,) = [each for each in WORDS if each.encode("utf-16-le") in data]
    return word


WORDS: Final = ("first", "second", "third")


def fill(queue: Queue, *words: str) -> None:
    for word in words or WORDS:
        queue.send(word)


def left(queue: Queue) -> list[Any]:
    return [message.body for message in queue.browse()]


# Remote reading.


@drives(0)
def test_the_port_is_told(peer: Peer) -> None:
    assert peer.call(0) == [PORT]


@drives(2, 3, 7)
def test_a_queue_is_opened_read_and_closed(peer: Peer, queue: Queue) -> None:
    fill(queue, "first")
    context, other = opened(peer, named(queue)), opened(peer, named(queue), PEEK)
    assert len({context, other, bytes(20)}) == 3
    assert body_in(read(peer, other, action=LOOK)) == "first"
    assert peer.call(3, context) == [bytes(20), 0]
    for operation in ((3, context), (4, context), (6, context), (9, context, ACK, 1)):
        with pytest.raises(Fault) as refused:
            peer.call(*operation)
        assert refused.value.status == MISMATCH
    assert body_in(read(peer, other, action=LOOK)) == "first"


@drives(2)
def test_a_queue_that_is_not_there_cannot_be_opened(peer: Peer) -> None:
    with pytest.raises(Fault) as refused:
        opened(peer, (3, 0, r"OS:ALPHA\private$\nowhere"))
    assert refused.value.status == 0xC00E_0003


@drives(4, 5, 7)
def test_a_cursor_walks_and_is_closed(peer: Peer, queue: Queue) -> None:
    fill(queue)
    context = opened(peer, named(queue))
    cursor, status = peer.call(4, context)
    assert status == 0
    seen = [body_in(read(peer, context, action=LOOK, cursor=cursor))]
    seen += [body_in(read(peer, context, action=LOOK_NEXT, cursor=cursor)) for _ in range(2)]
    assert seen == list(WORDS)
    assert peer.call(5, context, cursor) == [0]
    assert peer.call(5, context, cursor) == [NO_CURSOR]
    assert read(peer, context, action=LOOK, cursor=cursor)[-1] == NO_CURSOR


@drives(6)
def test_a_queue_is_purged_by_who_may_receive(peer: Peer, queue: Queue) -> None:
    fill(queue)
    assert peer.call(6, opened(peer, named(queue), PEEK)) == [ACCESS_DENIED]
    assert len(left(queue)) == 3
    assert peer.call(6, opened(peer, named(queue))) == [0]
    assert left(queue) == []


@drives(7, 9)
def test_a_message_is_received_in_two_steps(peer: Peer, queue: Queue) -> None:
    fill(queue)
    context = opened(peer, named(queue))
    assert body_in(read(peer, context, 1)) == "first"
    assert body_in(read(peer, context, 2)) == "second"
    assert peer.call(9, context, ACK, 1) == [0]
    assert peer.call(9, context, NACK, 2) == [0]
    assert left(queue) == ["second", "third"]
    assert peer.call(9, context, ACK, 2) == [INVALID_HANDLE]


@drives(8)
def test_what_does_not_wait_cannot_be_cancelled(peer: Peer, queue: Queue) -> None:
    fill(queue, "first")
    context = opened(peer, named(queue))
    assert peer.call(8, context, 5) == [INVALID_PARAMETER]
    read(peer, context, 5)
    assert peer.call(8, context, 5) == [INVALID_PARAMETER]


@drives(7, 10, 11)
def test_a_message_is_moved_to_a_subqueue(
    peer: Peer, queue: Queue, application: Application
) -> None:
    fill(queue)
    context = opened(peer, named(queue), RECEIVE)
    target, target_context = peer.call(11, named(queue, "later"), MOVE, 0, CLIENT, 1, 6, 1, 0, 1)
    assert target != 0
    # The number of a message is told without its highest byte, which goes by its priority, 3.
    lookup_id = 4 << 56 | read(peer, context, action=LOOK)[1]
    assert peer.call(10, context, target + 1, lookup_id, NO_UNIT) == [INVALID_HANDLE]
    assert peer.call(10, context, target, lookup_id, UNIT) == [TRANSACTION_USAGE]
    assert peer.call(10, context, target, lookup_id + 77, NO_UNIT) == [MESSAGE_NOT_FOUND]
    assert peer.call(10, context, target, lookup_id, NO_UNIT) == [0]
    assert left(queue) == ["second", "third"]
    assert left(application.queue(f"{queue.name};later")) == ["first"]
    assert peer.call(3, target_context) == [bytes(20), 0]
    assert peer.call(10, context, target, lookup_id, NO_UNIT) == [INVALID_HANDLE]


@drives(12, 13)
def test_nobody_has_us_take_part_in_a_transaction(peer: Peer, queue: Queue) -> None:
    fill(queue, "first")
    assert peer.call(12, UNIT, b"token", named(queue)) == [TRANSACTION_ENLIST]
    context = opened(peer, named(queue))
    found = peer.call(13, context, 0, 0, TAKE, 0, 1, WHOLE, WHOLE, UNIT)
    assert found[-1] == TRANSACTION_ENLIST
    assert left(queue) == ["first"]


@drives(13, 15)
def test_a_receive_in_no_transaction_ends_as_any_other(peer: Peer, queue: Queue) -> None:
    fill(queue)
    context = opened(peer, named(queue))
    for request, word in ((1, "first"), (2, "second")):
        found = peer.call(13, context, 0, 0, TAKE, 0, request, WHOLE, WHOLE, NO_UNIT)
        assert body_in(found) == word
    assert peer.call(15, context, ACK, 1) == [0]
    assert peer.call(15, context, NACK, 2) == [0]
    assert peer.call(15, context, NACK, 2) == [INVALID_HANDLE]
    assert left(queue) == ["second", "third"]


@pytest.mark.spec("MQRR-3.2.4.6-04")
@drives(10, 11)
def test_a_message_of_a_transactional_queue_is_moved_in_no_transaction_of_another_computer(
    peer: Peer, application: Application
) -> None:
    queue = application.create_queue(rf"private$\exact{next(_NUMBERS)}", transactional=True)
    with application.transaction() as transaction:
        queue.send("first", transaction=transaction)
    target, _ = peer.call(11, named(queue, "later"), MOVE, 0, CLIENT, 1, 6, 1, 0, 1)
    lookup_id = 7 << 56 | read(peer, opened(peer, named(queue)), action=LOOK)[1]
    context = opened(peer, named(queue))
    assert peer.call(10, context, target, lookup_id, UNIT) == [TRANSACTION_SEQUENCE]
    assert left(queue) == ["first"]
    assert peer.call(10, context, target, lookup_id, NO_UNIT) == [0]
    assert left(application.queue(f"{queue.name};later")) == ["first"]


@drives(14)
def test_what_no_transaction_has_received_cannot_be_rejected(peer: Peer, queue: Queue) -> None:
    fill(queue, "first")
    context = opened(peer, named(queue))
    lookup_id = 4 << 56 | read(peer, context, action=LOOK)[1]
    rejected = 0xC004
    assert peer.call(14, context, lookup_id + 1, rejected) == [MESSAGE_NOT_FOUND]
    assert peer.call(14, context, lookup_id, rejected) == [TRANSACTION_USAGE]
    assert peer.call(14, context, lookup_id, 0x4000) == [INVALID_PARAMETER]
    assert left(queue) == ["first"]


# Management.

LPWSTR, UI4, I8, LPWSTRS, NULL = 31, 19, 20, 0x101F, 1


def told(program: Peer, target: Name | None, numbers: range) -> dict[int, tuple[int, Any]]:
    values, status = program.call(0, target, list(numbers))
    assert status == 0
    return dict(zip(numbers, values, strict=True))


@drives(0, of="manager")
def test_every_property_of_the_computer_is_told(
    program: Peer, queue: Queue, application: Application
) -> None:
    fill(queue)
    found = told(program, None, range(1, 7))
    assert found[1][0] == found[2][0] == LPWSTRS
    path = named(queue)[2].partition(":")[2]
    assert path in found[2][1]
    assert rf"direct=os:{path}".lower() in [each.lower() for each in found[1][1]]
    assert found[3] == (NULL, None)
    assert found[4] == (LPWSTR, "CONNECTED")
    assert found[5] == (LPWSTR, application.status().software)
    assert found[6] == (I8, application.status().message_bytes)
    assert found[6][1] > 0


@drives(0, of="manager")
def test_every_property_of_a_queue_is_told(program: Peer, application: Application) -> None:
    queue = application.create_queue(rf"private$\told{next(_NUMBERS)}", transactional=True)
    for word in WORDS:
        with application.transaction() as transaction:
            queue.send(word, transaction=transaction)
    queue.move(queue.peek(0), "later")
    name = named(queue)
    found = told(program, name, range(1, 28))
    path = name[2].partition(":")[2]
    size = queue.properties().message_bytes
    assert {number: found[number] for number in (1, 3, 4, 5, 6, 11)} == {
        1: (LPWSTR, path),
        3: (LPWSTR, "PRIVATE"),
        4: (LPWSTR, "LOCAL"),
        5: (LPWSTR, "YES"),
        6: (LPWSTR, "NO"),
        11: (LPWSTR, "LOCAL CONNECTION"),
    }
    assert found[2] == (LPWSTR, queue.properties().format_name)
    assert found[7] == (UI4, 2)
    assert found[8] == (UI4, size)
    assert found[9] == found[10] == (UI4, 0)
    assert found[26] == (UI4, 1)
    assert found[27] == (LPWSTRS, ["later"])
    assert {number for number, value in found.items() if value == (NULL, None)} == {*range(12, 26)}


@pytest.fixture(scope="module")
def far(application: Application) -> str:
    """The name of a queue to which messages of a transaction cannot go: nobody is there."""
    name = r"DIRECT=TCP:127.0.0.9\private$\far"
    with application.transaction() as transaction:
        for word in WORDS:
            application.queue(name).send(word, transaction=transaction)
    wait_for(lambda: len(application.outgoing_queue(name).history) > 1)
    return name


FAR: Final = (3, 0, r"TCP:127.0.0.9\private$\far")


@drives(0, of="manager")
def test_every_property_of_a_queue_elsewhere_is_told(
    program: Peer, application: Application, far: str
) -> None:
    found = told(program, FAR, range(1, 28))
    assert found[2][1].lower() == far.lower()
    assert [found[number] for number in (3, 4, 5, 6, 7)] == [
        (LPWSTR, "PRIVATE"),
        (LPWSTR, "REMOTE"),
        (LPWSTR, "YES"),
        (LPWSTR, "UNKNOWN"),
        (UI4, 3),
    ]
    shown = application.outgoing_queue(far)
    assert found[8] == (UI4, shown.message_bytes)
    assert found[11][0] == LPWSTR
    assert found[11][1] in {"WAITING", "INACTIVE", "NONACTIVE", "NEED VALIDATION"}
    # Nobody is there to whom any could have gone, so none waits for an acknowledgment.
    sequence, number, previous = struct.unpack("<qII", found[18][1])
    assert (sequence > 0, number, previous) == (True, 4, 3)
    assert found[12] in ((LPWSTRS, ["IP=127.0.0.9"]), (NULL, None))
    assert {found[number][0] for number in (14, 21)} == {3}
    assert {found[number][0] for number in (15, 19, 20, 22, 23)} == {UI4}
    of_those_here = (1, 9, 10, 13, 16, 17, 24, 26, 27)
    assert [found[number] for number in of_those_here] == [(NULL, None)] * len(of_those_here)
    tag, history = found[25]
    assert tag == 0x100C
    assert [column[0] for column in history] == [0x1013, 0x1003, 0x1003, 0x100C]
    status, times, errors, addresses = (column[1] for column in history)
    assert len(status) == len(times) == len(errors) == len(addresses) > 1
    assert set(errors) == {1}


@drives(0, of="manager")
def test_what_is_no_property_is_told_as_it_was_asked(program: Peer, queue: Queue) -> None:
    for target, number in ((None, 7), (None, 0), (named(queue), 28)):
        values, status = program.call(0, target, [number])
        assert (values, status) == ([(NULL, None)], 0xC00E_0039)


@drives(1, of="manager")
def test_the_computer_is_disconnected_tidied_and_connected(
    program: Peer, queue: Queue, application: Application
) -> None:
    fill(queue)
    before = application.status().message_count
    for action, online in (("DISCONNECT", False), ("TIDY", False), ("CONNECT", True)):
        assert program.call(1, None, action) == [0]
        assert application.status().online is online
    # To tidy up loses nothing, whatever the text says (M-1).
    assert application.status().message_count == before
    assert left(queue) == list(WORDS)
    assert program.call(1, None, "PURGE") == [INVALID_PARAMETER]


@pytest.mark.usefixtures("far")
@drives(1, of="manager")
def test_a_queue_elsewhere_is_paused_resumed_and_sent_again(
    program: Peer, application: Application, far: str
) -> None:
    assert program.call(1, FAR, "PAUSE") == [0]
    assert application.outgoing_queue(far).state == "ONHOLD"
    assert program.call(1, FAR, "RESUME") == [0]
    assert application.outgoing_queue(far).state != "ONHOLD"
    assert program.call(1, FAR, "EOD_RESEND") == [0]
    assert program.call(1, FAR, "TIDY") == [INVALID_PARAMETER]
    assert application.outgoing_queue(far).message_count == 3


# Bindings.


BINDINGS: Final = {
    0: "1-03", 2: "2-02", 3: "3-01", 4: "4-01", 5: "5-02", 6: "6-01", 7: "7-02", 8: "8-01",
    9: "9-02", 10: "10-02", 11: "11-02", 12: "12-03", 13: "13-02", 14: "14-02", 15: "15-02",
}  # fmt: skip
"""What is shown of the parameter that stands for the connection: that no method is without one."""


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(each, marks=pytest.mark.spec(f"MQRR-3.1.4.{number}"))
        for each, number in BINDINGS.items()
    ],
)
def test_a_method_is_called_through_a_binding_of_its_interface(
    computer: Computer, operation: int
) -> None:
    assert computer.is_running
    stub = bytes(200) if operation else b""
    for context in (7, 0):
        dce = connect(PORT)
        try:
            # What impacket has agreed upon is 0.
            vars(dce)["_ctx"] = context
            dce.call(operation, stub)
            if context == 0 and operation == 0:
                assert dce.recv() == PORT.to_bytes(4, "little")
                continue
            # Through the binding it comes to the method, which has an opinion of its parameters.
            with pytest.raises(rpcrt.DCERPCException, match=OPINIONS if not context else UNBOUND):
                dce.recv()
        finally:
            dce.disconnect()


UNBOUND: Final = "1c010003|nca_s_unk_if|nca_unk_if"
OPINIONS: Final = "000006f7|nca_s_fault_context_mismatch|rpc_x_bad_stub_data|c00e0006"


@pytest.mark.spec("MQMR-2.2-01")
def test_there_is_one_way_to_write_parameters_of_management(computer: Computer) -> None:
    assert computer.is_running
    dce = connect(PORT, None)
    try:
        with pytest.raises(rpcrt.DCERPCException, match="transfer_syntaxes_not_supported"):
            dce.bind(uuidtup_to_bin(MANAGEMENT), transfer_syntax=rpcrt.DCERPC.NDR64Syntax)
    finally:
        dce.disconnect()
    dce = connect(PORT, MANAGEMENT)
    dce.disconnect()


# The table.


def test_every_method_has_a_test_with_a_client_that_is_not_ours() -> None:
    assert DRIVEN == {"reader": READING, "manager": MANAGING}
    for kinds in (READERS, MANAGERS):
        assert {Impacket, Ours} <= set(kinds)
