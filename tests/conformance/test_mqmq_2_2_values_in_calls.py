"""Names of queues and values of properties in calls, by their bytes. [MQMQ 2.2.7-2.2.16]"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.names import PrivateFormatName, parse_format_name
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.rpc.ndr import Call
from openmsmq.wire.rpc.queue_format import (
    QUEUE_FORMAT,
    DistributionListId,
    MulticastId,
    ObjectId,
    QueueFormat,
)
from openmsmq.wire.rpc.variants import PROPVARIANT, Variant
from tests.conformance.marks import shows

ANY: Final = "11111111-2222-3333-4444-555555555555"
GUID: Final = Guid.parse(ANY)
FORMAT, TYPES, INNER = "MQMQ-2.2.7", "MQMQ-2.2.12", "MQMQ-2.2.13.1"


class Named(msgspec.Struct, frozen=True):
    """A call with the name of a queue."""

    value: QueueFormat


class Valued(msgspec.Struct, frozen=True):
    """A call with the value of a property."""

    value: Variant


NAMED = Call(Named, ("value", QUEUE_FORMAT))
VALUED = Call(Valued, ("value", PROPVARIANT))

# Names.

NAMES: Final = (
    f"PUBLIC={ANY}",
    f"PUBLIC={ANY};JOURNAL",
    f"PRIVATE={ANY}\\1f",
    f"PRIVATE={ANY}\\1f;JOURNAL",
    f"MACHINE={ANY};JOURNAL",
    f"MACHINE={ANY};DEADLETTER",
    f"MACHINE={ANY};DEADXACT",
    r"DIRECT=OS:a\q",
    r"DIRECT=OS:a\q;JOURNAL",
    r"DIRECT=OS:a\SYSTEM$;DEADLETTER",
    r"DIRECT=OS:a\SYSTEM$;DEADXACT",
    r"DIRECT=OS:a\q;sub",
)
IDENTIFIERS: Final[dict[int, tuple[Any, ...]]] = {
    0: (None,),
    1: (GUID,),
    2: (ObjectId(GUID, 7),),
    3: tuple(text.removeprefix("DIRECT=") for text in NAMES if text.startswith("DIRECT=")),
    4: (GUID,),
    5: (GUID,),
    6: (DistributionListId(GUID, "example.org"),),
    7: (MulticastId(1, 2),),
    8: (r"OS:a\q;sub", r"OS:a\q"),
}


def obeys(kind: int, suffix_and_flags: int) -> bool:
    """Say whether a type may have these flags and this suffix, by the table of the section."""
    flags, suffix = suffix_and_flags & 0xF0, suffix_and_flags & 0x0F
    if suffix == 0:
        return flags == 0 and kind != 4
    if suffix == 1:
        return flags == 0x80 and kind not in (5, 6, 7)
    if suffix == 2:
        return flags == 0x80 and kind not in (1, 2, 5, 6, 7)
    if suffix == 3:
        return flags == 0x80 and kind in (3, 4)
    if suffix == 4:
        return kind == 5
    return suffix == 5 and flags == 0 and kind == 8


@shows(FORMAT, 2, 3, 4, 5, 6, 7, 8, 9)
@pytest.mark.parametrize("kind", range(9))
def test_a_name_that_is_understood_has_the_flags_of_its_suffix(kind: int) -> None:
    """One thing more is understood: a subqueue in a direct name whose suffix says so."""
    for suffix_and_flags in range(256):
        for identifier in IDENTIFIERS[kind]:
            try:
                QueueFormat(kind, suffix_and_flags, 0, identifier).name()
            except MsmqError:
                continue
            lenient = (kind, suffix_and_flags) in ((3, 5), (8, 0))
            assert obeys(kind, suffix_and_flags) or lenient


@shows(FORMAT, 10, 11, 12, 13)
@pytest.mark.parametrize("text", NAMES)
def test_a_name_that_is_sent_has_the_flags_of_its_suffix(text: str) -> None:
    said = QueueFormat.of(parse_format_name(text))
    assert obeys(said.kind, said.suffix_and_flags)
    assert said.suffix_and_flags & 0x0F != 4, "nobody names a connector queue to a reader"
    assert (said.kind == 8) is text.endswith(";sub")
    assert said.reserved == 0
    raw = NAMED.encode(Named(said))
    assert raw[:4] == bytes([said.kind, said.suffix_and_flags, 0, 0])


@shows(FORMAT, 14)
@given(st.sampled_from(NAMES), st.integers(0, 0xFFFF))
def test_what_is_reserved_changes_no_name(text: str, reserved: int) -> None:
    said = QueueFormat.of(parse_format_name(text))
    assert str(msgspec.structs.replace(said, reserved=reserved).name()) == text


@shows(FORMAT, 1)
@pytest.mark.parametrize("kind", range(256))
def test_the_type_of_a_name_is_one_of_nine(kind: int) -> None:
    rest = bytes([0, 0, 0, kind]) + bytes(3) + bytes(80)
    if kind > 8:
        with pytest.raises(DecodeError):
            NAMED.decode(bytes([kind]) + rest)
    else:
        said = QueueFormat(kind, 0, 0, IDENTIFIERS[kind][0])
        assert NAMED.decode(NAMED.encode(Named(said))).value == said


@shows(FORMAT, 15)
def test_a_private_queue_is_named_by_its_queue_manager_and_its_number() -> None:
    said = QueueFormat.of(PrivateFormatName(GUID, 0x1F))
    assert said.identifier == ObjectId(GUID, 0x1F)
    raw = NAMED.encode(Named(said))
    assert raw.endswith(bytes(GUID) + struct.pack("<I", 0x1F))


@shows(FORMAT, 16)
@pytest.mark.parametrize(
    ("text", "understood"),
    [
        (r"OS:a\q;sub", True),
        (r"TCP:10.0.0.1\PRIVATE$\q;sub", True),
        (r"OS:a\q", False),
        (r"OS:a\q;JOURNAL", False),
        (r"a\q;sub", False),
        ("nonsense", False),
    ],
)
def test_a_subqueue_is_named_by_a_direct_name_with_its_own_at_the_end(
    text: str, understood: bool
) -> None:
    said = QueueFormat(8, 5, 0, text)
    if understood:
        assert str(said.name()) == f"DIRECT={text}"
    else:
        with pytest.raises(MsmqError):
            said.name()


@shows("MQMQ-2.2.9", 1)
@given(st.text("ab.é", min_size=1, max_size=20))
def test_the_domain_of_a_list_is_a_text_that_ends_with_a_zero(domain: str) -> None:
    said = QueueFormat(6, 0, 0, DistributionListId(GUID, domain))
    raw = NAMED.encode(Named(said))
    wide = f"{domain}\0".encode("utf-16-le")
    assert wide in raw
    assert raw.index(wide) + len(wide) in range(len(raw) - 3, len(raw) + 1)
    assert NAMED.decode(raw).value == said
    open_end = raw[: raw.index(wide)] + f"{domain}x".encode("utf-16-le") + bytes(8)
    with pytest.raises(DecodeError):
        NAMED.decode(open_end)


# Values.


def encoded(tag: int, value: Any) -> bytes:
    """Return what stands behind the type, the reserved fields, and the type once more."""
    raw = VALUED.encode(Valued(Variant(tag, value)))
    head = struct.pack("<HBBI", tag, 0, 0, 0)
    assert raw.startswith(head + struct.pack("<H", tag))
    assert VALUED.decode(raw).value == Variant(tag, value)
    return raw[len(head) + 2 :]


def refused(tag: int, value: Any) -> None:
    with pytest.raises((EncodeError, TypeError)):
        VALUED.encode(Valued(Variant(tag, value)))


@shows(TYPES, 1, 2)
@pytest.mark.parametrize("tag", [0, 1])
def test_an_empty_value_has_no_field(tag: int) -> None:
    assert encoded(tag, None) == b""
    refused(tag, 5)


def number(own: int, *case: Any) -> Any:
    return pytest.param(*case, marks=shows(TYPES, own), id=f"type {case[0]}")


@pytest.mark.parametrize(
    ("tag", "layout", "low", "high"),
    [
        number(3, 2, "<h", -(2**15), 2**15 - 1),
        number(4, 3, "<2xi", -(2**31), 2**31 - 1),
        number(8, 16, "<b", -(2**7), 2**7 - 1),
        number(9, 17, "<B", 0, 2**8 - 1),
        number(10, 18, "<H", 0, 2**16 - 1),
        number(11, 19, "<2xI", 0, 2**32 - 1),
        number(12, 20, "<6xq", -(2**63), 2**63 - 1),
        number(13, 21, "<6xQ", 0, 2**64 - 1),
    ],
)
def test_a_number_has_the_size_and_the_sign_of_its_type(
    tag: int, layout: str, low: int, high: int
) -> None:
    for value in (low, high, 1):
        assert encoded(tag, value) == struct.pack(layout, value)
    refused(tag, low - 1)
    refused(tag, high + 1)


@shows(TYPES, 5)
@shows("MQMQ-2.2.14", 1, 2, 3)
def test_true_has_sixteen_ones_and_false_none() -> None:
    assert encoded(11, -1) == b"\xff\xff"
    assert encoded(11, 0) == b"\0\0"
    for raw, wanted in ((b"\xff\xff", True), (b"\0\0", False)):
        found = VALUED.decode(struct.pack("<HBBIH", 11, 0, 0, 0, 11) + raw).value
        assert bool(found.value) is wanted


@shows(TYPES, 14)
def test_a_text_ends_with_a_zero() -> None:
    assert encoded(31, "ab").endswith(struct.pack("<III", 3, 0, 3) + b"a\0b\0\0\0")


@shows(TYPES, 15)
def test_a_blob_is_its_size_and_its_bytes() -> None:
    raw = encoded(65, b"abcde")
    assert raw[2:6] == struct.pack("<I", 5)
    assert raw.endswith(struct.pack("<I", 5) + b"abcde")


@shows(TYPES, 16)
def test_an_identifier_is_pointed_to() -> None:
    raw = encoded(72, GUID)
    pointer, found = raw[2:6], raw[6:]
    assert pointer != bytes(4)
    assert found == bytes(GUID)


def vector(section: str, *case: Any) -> Any:
    marks = [shows(f"MQMQ-2.2.16.{section}", 1)]
    return pytest.param(*case, marks=marks, id=section)


@shows(TYPES, 17, 18)
@pytest.mark.parametrize(
    ("element", "values", "raw"),
    [
        vector("1", 17, b"abc", b"abc"),
        vector("2", 18, (1, 2, 3), struct.pack("<3H", 1, 2, 3)),
        vector("3", 3, (-1, 2, 3), struct.pack("<3i", -1, 2, 3)),
        vector("4", 19, (1, 2, 3), struct.pack("<3I", 1, 2, 3)),
        vector("5", 21, (1, 2, 3), struct.pack("<3Q", 1, 2, 3)),
        vector("6", 72, (GUID, GUID, GUID), bytes(GUID) * 3),
        vector("7", 31, ("a", "b", "c"), None),
        vector("8", 12, (Variant(19, 7), Variant(1), Variant(18, 9)), None),
    ],
)
def test_a_vector_counts_its_elements(element: int, values: Any, raw: bytes | None) -> None:
    found = encoded(0x1000 | element, values)
    assert found[2:6] == struct.pack("<I", 3), "cElems"
    assert found[6:10] != bytes(4), "pointed to"
    assert found[10:14] == struct.pack("<I", 3)
    if raw is not None:
        assert found[14:].lstrip(b"\0").startswith(raw.lstrip(b"\0"))
        assert found.endswith(raw)
    empty = encoded(0x1000 | element, b"" if element == 17 else ())
    assert empty[2:6] == bytes(4)
    with pytest.raises(DecodeError):
        VALUED.decode(
            struct.pack("<HBBIH", 0x1000 | element, 0, 0, 0, 0x1000 | element)
            + b"\0\0"
            + struct.pack("<III", 3, 0x20000, 2)
            + found[14:]
        )


@shows(TYPES, 6, 7)
def test_a_variant_inside_another_is_in_a_vector() -> None:
    inside = (Variant(19, 7), Variant(31, "a"))
    encoded(0x100C, inside)
    refused(12, Variant(19, 7))
    with pytest.raises(DecodeError):
        VALUED.decode(struct.pack("<HBBIH", 12, 0, 0, 0, 12) + bytes(40))


@shows(INNER, 1, 5)
@given(st.integers(0, 0xFFFF))
def test_a_value_has_one_of_the_types_and_is_of_that_type(tag: int) -> None:
    plain = {0, 1, 2, 3, 11, 16, 17, 18, 19, 20, 21, 31, 65, 72}
    known = plain | {0x1000 | each for each in (3, 12, 17, 18, 19, 21, 31, 72)}
    data = struct.pack("<HBBIH", tag, 0, 0, 0, tag) + bytes(60)
    if tag not in known:
        with pytest.raises(DecodeError):
            VALUED.decode(data)
    with pytest.raises(DecodeError):
        VALUED.decode(struct.pack("<HBBIH", tag, 0, 0, 0, tag ^ 1) + bytes(60))


@shows(INNER, 2, 3, 4)
@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 0xFFFF_FFFF))
def test_the_reserved_fields_of_a_value_mean_nothing(one: int, two: int, three: int) -> None:
    data = struct.pack("<HBBIH2xI", 19, one, two, three, 19, 5)
    assert VALUED.decode(data).value == Variant(19, 5)
