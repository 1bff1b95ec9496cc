"""Values, names and references in the forms that servers use."""

from __future__ import annotations

import bonsai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.runtime.active_directory.mapping.entries import (
    Entry,
    child_name,
    differences,
    escape,
    filter_text,
    flag_value,
    number_value,
    parent_name,
    reference,
    referenced,
)

guids = st.binary(min_size=16, max_size=16).map(Guid)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20)


def entry(**attributes: bytes) -> Entry:
    found = {name.lower(): (value,) for name, value in attributes.items()}
    return Entry("CN=x", Guid(bytes(16)), frozenset(), found)


@given(guids)
def test_a_reference_survives(identifier: Guid) -> None:
    assert referenced(reference(identifier)) == identifier
    assert referenced(reference(identifier) + b";<SID=S-1-5-18>;CN=x,DC=y") == identifier
    assert referenced(f"<GUID={identifier.hex()}>;CN=x".encode()) == identifier


@given(guids)
def test_what_is_deleted_is_not_referred_to(identifier: Guid) -> None:
    name = f"CN=msmq\\0ADEL:{identifier},CN=Deleted Objects,DC=y".encode()
    assert referenced(reference(identifier) + b";" + name) is None


def test_a_plain_name_refers_to_nothing_that_we_know() -> None:
    assert referenced(b"CN=x,DC=y") is None


@given(st.integers(0, 0xFFFFFFFF))
def test_a_number_of_32_bits_survives_its_sign(number: int) -> None:
    (value,) = number_value(number)
    assert -(1 << 31) <= int(value) < 1 << 31
    assert entry(n=value).unsigned("N", 0) == number


@given(st.booleans())
def test_a_boolean_is_a_word(value: bool) -> None:
    assert flag_value(value) in ((b"TRUE",), (b"FALSE",))
    assert entry(f=flag_value(value)[0]).flag("F") is value


@given(names, names)
def test_what_stands_above_an_entry_is_found(name: str, above: str) -> None:
    whole = child_name(name, child_name(above, "DC=mq,DC=test"))
    assert parent_name(whole) == child_name(above, "DC=mq,DC=test")
    assert parent_name(parent_name(whole)) == "DC=mq,DC=test"


@given(names.filter(lambda name: "\0" not in name))
def test_a_name_is_escaped_as_the_library_understands_it(name: str) -> None:
    read = bonsai.LDAPDN(child_name(name, "DC=test"))
    assert len(read.rdns) == 2


@pytest.mark.parametrize(
    ("name", "written"),
    [("a,b", "a\\2Cb"), (" a ", "\\20a\\20"), ("a=b#c", "a\\3Db\\23c"), ("é", "é"), ("\n", "\\0A")],
)
def test_escaped_names(name: str, written: str) -> None:
    assert escape(name) == written


@given(names)
def test_a_text_in_a_filter_is_plain(name: str) -> None:
    assert not set(filter_text(name)) & set("*()\0")
    assert filter_text(name).isascii()


def test_the_order_of_values_makes_no_difference() -> None:
    old = {"a": (b"1", b"2"), "b": (b"x",), "c": (b"y",)}
    new = {"a": (b"2", b"1"), "b": (b"z",), "c": (), "d": ()}
    assert differences(old, new) == {"b": (b"z",), "c": ()}
