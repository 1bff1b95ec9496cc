"""The shapes of published vulnerabilities of MSMQ, as packets: each costs its sender the session.

What is known of them is what advisories say: a length that reaches beyond the packet, in the
headers of messages that came over HTTP above all (CVE-2023-21554, "QueueJumper": the length of the
SRMP envelope; CVE-2023-21769 and CVE-2023-28302: packets that end the service; CVE-2023-35309,
CVE-2023-36606, CVE-2024-30080 and others: no more than that a packet does it). So every length,
count and announcement that a user message has is made to lie here, in all the ways that led to
trouble elsewhere: too large, negative, zero, overflowing when multiplied or added, and without the
thing that it announces. Each packet goes to the decoder, to a queue manager in memory, and over TCP
to one that runs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial

import msgspec
import pytest

from openmsmq.client.blocking import QueueManager
from openmsmq.manager.outputs import Disconnect
from openmsmq.model.limits import FORMAT_NAME_MAX_COUNT
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import base, security, soap, user
from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.soap import SoapHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, decode, encode, headers_end
from tests.effort import steps_of
from tests.fuzz.desk import HERE, OPENING, STRANGE, new_desk
from tests.runtime.computers import Computer, neighbours, running
from tests.runtime.strangers import STRANGER, Stranger, addresses, memory_mb
from tests.transfer.letters import SEQUENCE, direct, letter

ORDERS = r"private$\orders"
FLAGS_AT = base.SIZE + 44
NAME_AT = base.SIZE + user.FIXED_SIZE
SIZE_AT = 8
LABEL_UNITS_AT, BODY_SIZE_AT, ALLOCATED_AT, EXTENSION_AT = 1, 32, 36, 52
MEMORY_MAX_MB = 150
ATTACKER = addresses(1, network=66)[0]

TOO_LARGE = {
    "one more than is there": 0x0000_1000,
    "largest positive": 0x7FFF_FFFF,
    "negative": 0xFFFF_FFFF,
    "most negative": 0x8000_0000,
    "overflows when doubled": 0x8000_0004,
    "overflows when added to its place": 0xFFFF_FF80,
}


def put(packet: bytes, at: int, form: str, value: int) -> bytes:
    """Change one number of a packet."""
    changed = bytearray(packet)
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


def flagged(packet: bytes, bits: int) -> bytes:
    """Announce headers that are not there."""
    (flags,) = struct.unpack_from("<I", packet, FLAGS_AT)
    return put(packet, FLAGS_AT, "<I", flags | bits)


class Shapes:
    """Packets for a queue of a computer, and what is wrong with each."""

    def __init__(self, address: str) -> None:
        plain = letter(STRANGER, 1, direct(address, ORDERS), b"a body of bytes", label="label")
        self.plain = encode(plain)
        replace = msgspec.structs.replace
        self.soap = encode(
            replace(plain, soap=SoapHeader("envelope\0".encode("utf-16-le"), b"b\0o\0\0\0"))
        )
        self.security = encode(
            replace(plain, security=SecurityHeader(b"", b"key", b"signature", b"certificate"))
        )
        queues = AddressList((DirectName(r"OS:a\q"), DirectName(r"OS:b\q")))
        empty = AddressList()
        self.lists = encode(
            replace(plain, multi_queue=MultiQueueFormatHeader(queues, empty, empty, b"sign"))
        )
        self.transaction = encode(replace(plain, transaction=TransactionHeader(SEQUENCE, 1, 0)))
        self.properties_at = outline(self.plain).properties_offset
        self.soap_at = headers_end(self.plain)
        self.lists_at = headers_end(self.plain)
        self.security_at = outline(self.plain).properties_offset

    def all(self) -> dict[str, bytes]:
        """Every shape, by what is wrong with it."""
        found: dict[str, bytes] = {}
        for family in (
            self._packet_sizes,
            self._properties,
            self._soap,
            self._security,
            self._lists,
            self._names,
            self._announced,
        ):
            found |= family()
        return found

    def _packet_sizes(self) -> dict[str, bytes]:
        wrong = {
            "zero": 0,
            "of a header alone": base.SIZE,
            "one below the least message": base.SIZE + user.FIXED_SIZE - 1,
            "negative": 0xFFFF_FFFF,
            "most negative": 0x8000_0000,
            "one above the largest packet": 4_194_305,
        }
        found = {
            f"packet size {how}": put(self.plain, SIZE_AT, "<I", size)
            for how, size in wrong.items()
        }
        inside = len(self.plain) - 8
        found["packet ends inside its body"] = put(self.plain, SIZE_AT, "<I", inside)[:inside]
        return found

    def _properties(self) -> dict[str, bytes]:
        at = self.properties_at
        found = {}
        for how, size in TOO_LARGE.items():
            both = put(self.plain, at + ALLOCATED_AT, "<I", size)
            found[f"body size {how}"] = put(both, at + BODY_SIZE_AT, "<I", size)
            found[f"extension size {how}"] = put(self.plain, at + EXTENSION_AT, "<I", size)
        found["label longer than any label"] = put(self.plain, at + LABEL_UNITS_AT, "<B", 251)
        found["label beyond the packet"] = put(self.plain, at + LABEL_UNITS_AT, "<B", 250)
        found["body and extension that add up to nothing"] = put(
            put(self.plain, at + BODY_SIZE_AT, "<I", 0xFFFF_FFF0), at + EXTENSION_AT, "<I", 0x10
        )
        return found

    def _soap(self) -> dict[str, bytes]:
        """What QueueJumper is about: the length of the SRMP envelope, and compound messages."""
        at = self.soap_at
        second = at + soap.SECTION_SIZE + 20
        assert struct.unpack_from("<H", self.soap, second)[0] == soap.BODY_SECTION
        found = {}
        for how, size in TOO_LARGE.items():
            found[f"SRMP envelope length {how}"] = put(self.soap, at + 4, "<I", size)
            found[f"SRMP body length {how}"] = put(self.soap, second + 4, "<I", size)
        compound = struct.pack("<HHIII", 0x01F4, 0, 0xFFFF_FFFF, 0x7FFF_FFFF, 0xFFFF_FFF0)
        found["compound message header in the place of the envelope"] = self._behind(
            flagged(self.plain, user.SOAP), compound + bytes(32)
        )
        found["SRMP envelope without the second section"] = self._behind(self.soap[:second], b"")
        found["SRMP sections in the wrong order"] = put(
            put(self.soap, at, "<H", soap.BODY_SECTION), second, "<H", soap.HEADER_SECTION
        )
        found["SRMP envelope of zero bytes and a length"] = self._behind(
            flagged(self.plain, user.SOAP), struct.pack("<HHI", soap.HEADER_SECTION, 0, 64)
        )
        return found

    def _security(self) -> dict[str, bytes]:
        at = self.security_at
        names = ("sender", "key", "signature")
        found = {
            f"security header with a {name} beyond the packet": put(
                self.security, at + 2 + 2 * index, "<H", 0xFFFF
            )
            for index, name in enumerate(names)
        }
        for how, size in TOO_LARGE.items():
            found[f"certificate size {how}"] = put(self.security, at + 8, "<I", size)
            found[f"provider size {how}"] = put(self.security, at + 12, "<I", size)
        cut_off = self.security[: at + security.FIXED_SIZE]
        found["security header whose items are missing"] = self._behind(cut_off, b"")
        return found

    def _lists(self) -> dict[str, bytes]:
        at = self.lists_at
        found = {}
        for how, size in TOO_LARGE.items():
            found[f"list size {how}"] = put(self.lists, at, "<I", size)
            found[f"element count {how}"] = put(self.lists, at + 8, "<I", size)
        found["list size zero"] = put(self.lists, at, "<I", 0)
        found["element count that times its size is small again"] = put(
            self.lists, at + 8, "<I", 0x4000_0001
        )
        found["element of no kind"] = put(self.lists, at + 12, "<H", 0x7FFF)
        (size,) = struct.unpack_from("<I", self.lists, at)
        text = bytearray(self.lists)
        text[at + 14 : at + size] = b"a\0" * ((size - 14) // 2)
        found["direct name in a list without its end"] = bytes(text)
        for count in (FORMAT_NAME_MAX_COUNT + 1, 200_000):
            found[f"{count} names in a list"] = self._long_list(count)
        return found

    def _long_list(self, count: int) -> bytes:
        """Name a queue so often: nothing lies here, and to read it would take seconds."""
        at = self.lists_at
        (size,) = struct.unpack_from("<I", self.lists, at)
        name = b"\3\0" + "OS:a\\q\0".encode("utf-16-le")
        begin = struct.pack("<IHHI", 12 + count * len(name), 0x64, 0, count)
        more = begin + name * count + self.lists[at + size :]
        return self._behind(self.lists[:at], more)

    def _names(self) -> dict[str, bytes]:
        end = self.properties_at
        unended = self.plain[:NAME_AT] + b"T\0" * ((end - NAME_AT) // 2) + self.plain[end:]
        endless = self.plain[:NAME_AT] + b"T\0" * ((len(self.plain) - NAME_AT) // 2)
        return {
            "direct name without its end": unended[: len(self.plain)],
            "direct name up to the end of the packet": self._behind(endless, b""),
            "destination of a form that does not exist": put(
                self.plain,
                FLAGS_AT,
                "<I",
                struct.unpack_from("<I", self.plain, FLAGS_AT)[0] & ~(7 << 10) | 1 << 10,
            ),
        }

    def _announced(self) -> dict[str, bytes]:
        """Flags that announce a header, and a packet that ends before it."""
        bare = encode(
            UserMessage(
                decode_message(self.plain).user,
                msgspec.structs.replace(
                    decode_message(self.plain).properties,
                    body=b"",
                    label=b"",
                    body_size=0,
                    allocated_size=0,
                    padding=b"",
                ),
            )
        )
        found = {
            f"{name} announced and absent": flagged(bare, bits)
            for name, bits in (
                ("SRMP envelope", user.SOAP),
                ("multiple queues", user.MULTI_QUEUE),
                ("transaction", user.TRANSACTION),
                ("security header", user.SECURITY),
                ("connector type", user.CONNECTOR),
                ("all of them", user.SOAP | user.MULTI_QUEUE | user.TRANSACTION | user.SECURITY),
            )
        }
        found["debug header announced and absent"] = put(
            bare, 2, "<H", struct.unpack_from("<H", bare, 2)[0] | base.DEBUG
        )
        found["properties that are not announced"] = put(
            bare, FLAGS_AT, "<I", struct.unpack_from("<I", bare, FLAGS_AT)[0] & ~user.PROPERTIES
        )
        found["transaction header cut in the middle"] = self._behind(
            self.transaction[: self.properties_at + 10], b""
        )
        return found

    @staticmethod
    def _behind(packet: bytes, more: bytes) -> bytes:
        """Put bytes behind a packet, and set its size right."""
        whole = packet + more
        whole += bytes(-len(whole) & 3)
        return put(whole, SIZE_AT, "<I", len(whole))


def decode_message(packet: bytes) -> UserMessage:
    message = decode(packet)
    assert isinstance(message, UserMessage)
    return message


IN_MEMORY = Shapes(HERE).all()


def test_the_packets_that_are_made_to_lie_are_good_ones_before() -> None:
    shapes = Shapes(HERE)
    for packet in (shapes.plain, shapes.soap, shapes.security, shapes.lists, shapes.transaction):
        assert encode(decode(packet)) == packet
    assert len(IN_MEMORY) > 60


@pytest.mark.parametrize("shape", IN_MEMORY)
def test_a_length_that_lies_is_refused_by_the_decoder(shape: str) -> None:
    with pytest.raises(DecodeError):
        decode(IN_MEMORY[shape])


@pytest.mark.parametrize("shape", IN_MEMORY)
def test_a_length_that_lies_costs_the_session_and_stores_nothing(shape: str) -> None:
    desk = new_desk()
    before = desk.store.scan(b"", b"\xff" * 64, 10_000)
    desk.manager.session_accepted(2, STRANGE, desk.now)
    desk.manager.session_data(2, OPENING, desk.now)
    desk.work()
    assert Disconnect(2) not in desk.outputs
    # What a size leaves of the packet's bytes is the next packet, so a whole one follows.
    desk.manager.session_data(2, IN_MEMORY[shape] + bytes(64), desk.now)
    desk.work()
    assert Disconnect(2) in desk.outputs
    after = dict(desk.store.scan(b"", b"\xff" * 64, 10_000))
    assert {key: after.get(key) for key, _ in before} == dict(before)
    assert not any(b"a body of bytes" in value for value in after.values())


def test_a_packet_full_of_names_is_no_more_work_than_any_other_of_its_size() -> None:
    full = Shapes(HERE).all()["200000 names in a list"]
    plain = encode(letter(STRANGER, 1, direct(HERE, ORDERS), bytes(len(full))))
    names = {"full": full, "plain": plain}
    steps = {}
    for name, packet in names.items():
        desk = new_desk()
        desk.manager.session_accepted(2, STRANGE, desk.now)
        desk.manager.session_data(2, OPENING, desk.now)
        desk.work()
        steps[name] = steps_of(partial(desk.manager.session_data, 2, packet, desk.now))
    assert steps["full"] < steps["plain"] + 500, steps


# Over TCP.


class Office:
    """A queue manager that runs, its application, and an honest neighbour."""

    def __init__(self, target: Computer, manager: QueueManager, neighbour: QueueManager) -> None:
        self.target = target
        self.manager = manager
        self.manager.create_queue(ORDERS)
        self.sender = neighbour.queue(target.queue(ORDERS))
        self.orders = self.manager.queue(ORDERS)
        self.said = 0

    def talk(self) -> None:
        """See that an honest message comes through."""
        self.said += 1
        self.sender.send(b"honest %d" % self.said, recoverable=True)
        assert self.orders.receive(timeout=30).body == b"honest %d" % self.said


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    target, honest = neighbours(tmp_path_factory.mktemp("shapes"), "TARGET", "HONEST")
    with running(target, honest), target.connect() as manager, honest.connect() as neighbour:
        made = Office(target, manager, neighbour)
        made.talk()
        yield made
        made.talk()
        assert memory_mb(target) < MEMORY_MAX_MB


@pytest.mark.parametrize("shape", IN_MEMORY)
def test_over_tcp_it_costs_the_session_stores_nothing_and_harms_nobody_else(
    office: Office, shape: str
) -> None:
    packet = Shapes(office.target.address).all()[shape]
    with Stranger(office.target, ATTACKER) as stranger:
        assert stranger.open()
        stranger.send(packet + bytes(64))
        assert stranger.is_cut_off()
    assert office.orders.count() == 0
    office.talk()


# Not a broken packet, and still a lie.

LIES: dict[str, Callable[[Stranger], bytes]] = {
    "a packet as large as can be that never comes": lambda it: put(
        it.message(ORDERS), SIZE_AT, "<I", 4_194_304
    ),
    "a session header announced and absent": lambda it: put(
        it.message(ORDERS), 2, "<H", 3 | base.SESSION
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_is_announced_and_never_comes_holds_up_nobody_and_takes_no_memory(
    office: Office, lie: str
) -> None:
    before_mb = memory_mb(office.target)
    strangers = [Stranger(office.target, address) for address in addresses(20, network=67)]
    try:
        for stranger in strangers:
            assert stranger.open()
            stranger.send(LIES[lie](stranger))
        office.talk()
        assert office.orders.count() == 0
        assert memory_mb(office.target) < before_mb + 20
    finally:
        for stranger in strangers:
            stranger.socket.close()
