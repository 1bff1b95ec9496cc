"""Names of queues in the directory: cut, hashed, and put together again."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openmsmq.runtime.active_directory.mapping.names import (
    HASH_TABLE,
    entry_name,
    lower_case,
    name_hash,
    queue_name,
)

# Queue names cannot have backslashes, nor halves of characters.
characters = st.characters(codec="utf-16", exclude_characters="\\", exclude_categories=["Cs"])
names = st.text(characters, min_size=1, max_size=124)


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def hash_by_the_book(name: str) -> str:
    """The algorithm of the specification, step by step."""
    value = 0
    data = name.encode("utf-16-be")
    for high, low in zip(data[::2], data[1::2], strict=True):
        small = chr(high << 8 | low).lower()
        unit = ord(small) if len(small) == 1 else high << 8 | low
        for byte in (unit >> 8, unit & 0xFF):
            down_shifted = value >> 8
            value = down_shifted ^ HASH_TABLE[byte ^ (value & 0xFF)]
    return f"{value:08x}"


@pytest.mark.parametrize(
    ("index", "value"),
    [(0, 0), (1, 0x82E0FE45), (128, 0x9B619023), (200 + 24, 0x26D86408), (255, 0x93E14A01)],
)
def test_the_table_is_that_of_the_specification(index: int, value: int) -> None:
    assert HASH_TABLE[index] == value


@pytest.mark.spec(*(f"MQDSSM-2.2.5-0{number}" for number in range(1, 9)))
@given(names)
def test_the_hash_is_that_of_the_specification(name: str) -> None:
    assert name_hash(name) == hash_by_the_book(name)


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("\u03a3\u03a3", "\u03c3\u03c3"),  # Not the letter that Greek ends words with.
        ("\u0130x", "\u0130x"),  # What would become two characters stays one.
        ("\U00010400", "\U00010400"),  # Half of a character has no case.
    ],
)
def test_characters_become_small_one_by_one(name: str, small: str) -> None:
    assert lower_case(name) == small
    assert name_hash(name) == name_hash(small)


@given(st.text("abcXYZ019", max_size=80))
def test_the_hash_does_not_see_letter_case(name: str) -> None:
    assert name_hash(name.upper()) == name_hash(name.lower())


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.2.5-01",
    "MQDSSM-3.1.6.11.2.1-05",
    "MQDSSM-3.1.6.11.2.1-08",
    "MQDSSM-3.1.6.11.2.1-10",
)
@given(names)
@example("b" * 100)
def test_a_name_survives_the_directory(name: str) -> None:
    assert queue_name(*entry_name(name)) == name


@given(names)
def test_the_name_of_an_entry_is_never_too_long(name: str) -> None:
    assert units(entry_name(name)[0]) <= 64


@pytest.mark.spec("MQDSSM-3.1.6.1.2.5-03", "MQDSSM-3.1.6.7.2.5-01")
@given(st.text("abc", min_size=1, max_size=63))
@example("c" * 63)
def test_a_short_name_stays_as_it_is(name: str) -> None:
    assert entry_name(name) == (name, "")


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.2.5-04",
    "MQDSSM-3.1.6.7.2.5-02",
    "MQDSSM-3.1.6.7.2.5-03",
    "MQDSSM-3.1.6.7.2.5-04",
    "MQDSSM-3.1.6.7.2.5-05",
    "MQDSSM-3.1.6.11.2.1-04",
)
@given(st.text("abc", min_size=64, max_size=124))
def test_a_long_name_is_cut_and_hashed(name: str) -> None:
    entry, rest = entry_name(name)
    assert entry == f"{name[:55]}-{name_hash(name)}"
    assert len(entry) == 64
    assert rest == name[55:]


@pytest.mark.spec("MQDSSM-3.1.6.1.2.5-02")
@pytest.mark.parametrize("special", ["\n", "/", "#", ">", "<", "="])
def test_a_special_character_counts_twice(special: str) -> None:
    assert entry_name("a" * 62 + special)[1] == "a" * 7 + "\\" + special
    assert entry_name("a" * 61 + special) == ("a" * 61 + special, "")


def test_a_backslash_is_not_cut_from_what_it_announces() -> None:
    name = "a" * 54 + "=" + "b" * 30
    entry, rest = entry_name(name)
    assert entry.startswith("a" * 54 + "-")
    assert rest == "\\=" + "b" * 30


def test_a_character_of_two_units_is_not_cut() -> None:
    entry, rest = entry_name("a" * 54 + "\U0001f600" + "b" * 30)
    assert entry.startswith("a" * 54 + "-")
    assert rest.startswith("\U0001f600")


def test_two_long_names_with_one_beginning_are_two_entries() -> None:
    assert entry_name("a" * 100 + "1")[0] != entry_name("a" * 100 + "2")[0]


def test_a_lost_extension_leaves_the_beginning() -> None:
    assert queue_name("a" * 55 + "-0123abcd", "") == "a" * 55
