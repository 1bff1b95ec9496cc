"""Values of properties: their layout, and how deep they go."""

from __future__ import annotations

import struct

import msgspec
import pytest
from hypothesis import given

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.rpc.ndr import Call
from openmsmq.wire.rpc.variants import PROPVARIANT, Variant, VariantTag
from tests.strategies.rpc_values import VARIANT


class One(msgspec.Struct, frozen=True):
    value: Variant


CALL = Call(One, ("value", PROPVARIANT))
VECTOR = VariantTag.VARIANT_VECTOR


@given(VARIANT)
def test_a_value_survives(value: Variant) -> None:
    assert CALL.decode(CALL.encode(One(value))) == One(value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Variant(0), "0000 0000 00000000 0000"),
        (Variant(2, -2), "0200 0000 00000000 0200 feff"),
        (Variant(3, -2), "0300 0000 00000000 0300 0000 feffffff"),
        (Variant(20, 5), "1400 0000 00000000 1400 000000000000 0500000000000000"),
        (
            Variant(31, "a"),
            "1f00 0000 00000000 1f00 0000 00000200 02000000 00000000 02000000 6100 0000",
        ),
        (
            Variant(0x1013, (7, 8)),
            "1310 0000 00000000 1310 0000 02000000 00000200 02000000 07000000 08000000",
        ),
        (
            Variant(VECTOR, (Variant(19, 7), Variant(1))),
            "0c10 0000 00000000 0c10 0000 02000000 00000200 02000000"
            "1300 0000 00000000 1300 0000 07000000"
            "0100 0000 00000000 0100",
        ),
    ],
)
def test_a_value_has_its_bytes(value: Variant, shown: str) -> None:
    assert CALL.encode(One(value)) == bytes.fromhex(shown)


def nested(depth: int) -> Variant:
    value = Variant(19, 1)
    for _ in range(depth):
        value = Variant(VECTOR, (value,))
    return value


def test_vectors_of_variants_are_nested_twice_and_no_deeper() -> None:
    assert CALL.decode(CALL.encode(One(nested(2)))) == One(nested(2))
    with pytest.raises(EncodeError, match="without an arm"):
        CALL.encode(One(nested(3)))
    one = struct.pack("<HxxIHxxII", VECTOR, 0, VECTOR, 1, 1)
    deep = b"".join([one, struct.pack("<I", 1), one, struct.pack("<I", 1), one, bytes(100)])
    with pytest.raises(DecodeError, match="without an arm 4108"):
        CALL.decode(deep)


def test_what_is_reserved_is_not_looked_at() -> None:
    assert CALL.decode(struct.pack("<HBBIHxxI", 19, 9, 9, 9, 19, 5)) == One(Variant(19, 5))


@pytest.mark.parametrize("tag", [4, 12, 30, 0x1002, 0x2013, 0xFFFF])
def test_an_unknown_type_is_refused(tag: int) -> None:
    with pytest.raises(DecodeError, match="without an arm"):
        CALL.decode(struct.pack("<HxxIH", tag, 0, tag) + bytes(30))


def test_what_has_no_value_cannot_be_written_with_one() -> None:
    with pytest.raises(EncodeError, match="nothing can be said"):
        CALL.encode(One(Variant(1, 5)))
