"""Property values, packed by their variant types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields import variants
from openmsmq.wire.fields.variants import PROPERTIES, VECTOR_MAX_COUNT, PropertyValue, VariantType
from tests.strategies.wire_parts import property_values
from tests.unit.wire.codec_checks import assert_refused_cheaply

GUID = Guid(range(16))

each_type = pytest.mark.parametrize("kind", VariantType, ids=lambda kind: kind.name)


@each_type
@given(st.data(), st.binary(max_size=5), st.binary(max_size=5))
def test_a_value_survives_the_wire(
    kind: VariantType, data: st.DataObject, before: bytes, after: bytes
) -> None:
    value = data.draw(property_values(kind))
    raw = variants.write(kind, value, "here")
    found, end = variants.read(kind, before + raw + after, len(before), "here")
    assert (found, end) == (value, len(before) + len(raw))
    assert type(found) is type(value)


@each_type
@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_refused(kind: VariantType, data: bytes) -> None:
    try:
        value, end = variants.read(kind, data, 0, "here")
    except DecodeError:
        return
    assert variants.write(kind, value, "here") == data[:end]


@pytest.mark.parametrize(
    "kind", [VariantType.UI4_VECTOR, VariantType.LPWSTR_VECTOR, VariantType.CLSID_VECTOR]
)
def test_a_vector_of_more_elements_than_any_has_is_refused_both_ways(kind: VariantType) -> None:
    element = {
        VariantType.UI4_VECTOR: 1,
        VariantType.LPWSTR_VECTOR: "x",
        VariantType.CLSID_VECTOR: GUID,
    }[kind]
    most = (element,) * VECTOR_MAX_COUNT
    raw = variants.write(kind, most, "here")
    assert variants.read(kind, raw, 0, "here") == (most, len(raw))
    with pytest.raises(EncodeError, match="65536 elements; at most 65535"):
        variants.write(kind, (*most, element), "here")
    too_many = (VECTOR_MAX_COUNT + 1).to_bytes(4, "little") + raw[4:] + raw[4:36]
    with pytest.raises(DecodeError, match="65536 elements; at most 65535") as refusal:
        variants.read(kind, too_many, 0, "here")
    assert refusal.value.offset == 0


@each_type
@given(st.data())
def test_a_truncated_value_is_refused(kind: VariantType, data: st.DataObject) -> None:
    raw = variants.write(kind, data.draw(property_values(kind)), "here")
    for size in range(len(raw)):
        with pytest.raises(DecodeError):
            variants.read(kind, raw[:size], 0, "here")


@pytest.mark.parametrize(
    ("kind", "value", "raw"),
    [
        pytest.param(kind, value, raw, marks=pytest.mark.spec(*ids), id=kind.name)
        for kind, value, raw, ids in [
            (VariantType.I2, -2, "feff", ["MQCN-2.2.3.1-01", "MQCN-2.2.3.1-02"]),
            (VariantType.I4, -2, "feffffff", ["MQCN-2.2.3.2-01", "MQCN-2.2.3.2-02"]),
            (VariantType.I1, -2, "fe", ["MQCN-2.2.3.4-01"]),
            (VariantType.UI1, 254, "fe", ["MQCN-2.2.3.5-01"]),
            (VariantType.UI2, 0x1234, "3412", ["MQCN-2.2.3.6-01", "MQCN-2.2.3.6-02"]),
            (
                VariantType.UI4,
                0x12345678,
                "78563412",
                ["MQCN-2.2.3-01", "MQCN-2.2.3.7-01", "MQCN-2.2.3.7-02"],
            ),
            (VariantType.I8, -2, "fe" + "ff" * 7, ["MQCN-2.2.3.8-01", "MQCN-2.2.3.8-02"]),
            (VariantType.UI8, 1 << 63, "00" * 7 + "80", ["MQCN-2.2.3.9-01", "MQCN-2.2.3.9-02"]),
            (
                VariantType.LPWSTR,
                "ab",
                "610062000000",
                ["MQCN-2.2.3.10-01", "MQCN-2.2.3.10-02", "MQCN-2.2.3.10-03"],
            ),
            (
                VariantType.BLOB,
                b"abc",
                "03000000616263",
                ["MQCN-2.2.3.11-01", "MQCN-2.2.3.11-02", "MQCN-2.2.3.11-03"],
            ),
            (VariantType.CLSID, GUID, GUID.hex(), ["MQCN-2.2.3.12-01"]),
            (
                VariantType.UI4_VECTOR,
                (7, 9),
                "020000000700000009000000",
                [f"MQCN-2.2.3.13-0{number}" for number in range(1, 5)],
            ),
            (
                VariantType.CLSID_VECTOR,
                (GUID, GUID),
                "02000000" + 2 * GUID.hex(),
                [f"MQCN-2.2.3.14-0{number}" for number in range(1, 5)],
            ),
            (
                VariantType.LPWSTR_VECTOR,
                ("a", ""),
                "02000000610000000000",
                [f"MQCN-2.2.3.15-0{number}" for number in range(1, 5)],
            ),
        ]
    ],
)
def test_each_type_has_its_layout(kind: VariantType, value: PropertyValue, raw: str) -> None:
    assert variants.write(kind, value, "here").hex() == raw
    assert variants.read(kind, bytes.fromhex(raw), 0, "here")[0] == value


@pytest.mark.spec(*(f"MQCN-2.2.3.3-0{number}" for number in range(1, 6)))
@given(st.integers(0, 0xFFFF))
def test_a_truth_value_is_all_ones_or_all_zeros(number: int) -> None:
    raw = number.to_bytes(2, "little")
    if number in (0, 0xFFFF):
        assert variants.read(VariantType.BOOL, raw, 0, "here") == (number != 0, 2)
        assert variants.write(VariantType.BOOL, number != 0, "here") == raw
    else:
        with pytest.raises(DecodeError, match="truth value"):
            variants.read(VariantType.BOOL, raw, 0, "here")


@pytest.mark.parametrize(
    "kind",
    [
        VariantType.BLOB,
        VariantType.UI1_VECTOR,
        VariantType.UI4_VECTOR,
        VariantType.CLSID_VECTOR,
        VariantType.LPWSTR_VECTOR,
    ],
    ids=lambda kind: kind.name,
)
def test_a_count_that_lies_is_refused_cheaply(kind: VariantType) -> None:
    raw = b"\xff\xff\xff\xff" + bytes(64)
    assert_refused_cheaply(lambda data: variants.read(kind, data, 0, "here"), raw)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (VariantType.UI1, 256),
        (VariantType.UI1, -1),
        (VariantType.UI1, True),
        (VariantType.UI1, "1"),
        (VariantType.BOOL, 1),
        (VariantType.LPWSTR, b"raw"),
        (VariantType.CLSID, b"0123456789abcdef"),
        (VariantType.BLOB, GUID),
        (VariantType.BLOB, (1, 2)),
        (VariantType.UI4_VECTOR, (1, "2")),
        (VariantType.UI4_VECTOR, 1),
    ],
)
def test_a_value_of_another_type_is_not_written(kind: VariantType, value: PropertyValue) -> None:
    with pytest.raises(EncodeError, match="no value of type"):
        variants.write(kind, value, "here")


@pytest.mark.parametrize(
    ("identifier", "name", "kind"),
    [
        (101, "PROPID_Q_INSTANCE", VariantType.CLSID),
        (106, "PROPID_Q_BASEPRIORITY", VariantType.I2),
        (108, "PROPID_Q_LABEL", VariantType.LPWSTR),
        (207, "PROPID_QM_CNS", VariantType.CLSID_VECTOR),
        (1101, "PROPID_Q_SECURITY", VariantType.BLOB),
        (1404, "PROPID_D_OBJTYPE", VariantType.UI1),
    ],
)
def test_properties_have_their_names_and_types(
    identifier: int, name: str, kind: VariantType
) -> None:
    assert PROPERTIES[identifier] == (name, kind)


def test_every_property_that_notifications_list_is_known() -> None:
    listed = {101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 125, 126}
    listed |= {201, 202, 206, 207, 214, 215, 216, 218, 219, 220, 1101, 1201, 1403, 1404}
    assert listed <= PROPERTIES.keys()
