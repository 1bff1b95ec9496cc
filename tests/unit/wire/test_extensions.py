"""A stored message may name its own dead-letter queue behind its headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.extensions import (
    dead_letter_extension,
    dead_letter_path,
    dead_letter_path_of,
    without_extensions,
)
from openmsmq.wire.packets import decode
from tests.strategies.messages import Draft

paths = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def test_the_extension_is_laid_out_as_specified() -> None:
    assert dead_letter_extension("ab") == bytes.fromhex(
        "0c000000 0c000000 01 000000 0c000000 6100 6200 0000 0000"
    )


@given(path=paths)
def test_a_dead_letter_queue_is_read_as_it_was_written(path: str) -> None:
    extension = dead_letter_extension(path)
    assert len(extension) % 4 == 0
    assert dead_letter_path(extension) == path


@given(path=paths, subqueue=st.binary(max_size=20), behind=st.binary(max_size=9))
def test_other_extensions_beside_it_are_passed_over(
    path: str, subqueue: bytes, behind: bytes
) -> None:
    header = dead_letter_extension(path)[12:]
    rest = (4 + len(subqueue)).to_bytes(4, "little") + subqueue + header + behind
    tail = b"\x0c\0\0\0" + len(rest).to_bytes(4, "little") + b"\x13\0\0\0" + rest
    assert dead_letter_path(tail) == path


@given(tail=st.binary(max_size=60))
def test_what_is_no_extension_names_no_queue(tail: bytes) -> None:
    assert isinstance(dead_letter_path(tail), str)
    assert dead_letter_path(tail + dead_letter_extension("a")) in ("", "a")


@pytest.mark.parametrize("cut", range(1, 24))
def test_an_extension_cut_off_names_no_queue(cut: int) -> None:
    assert dead_letter_path(dead_letter_extension("ab")[:-cut]) == ""


@given(path=paths.filter(bool), body=st.binary(max_size=9))
def test_a_message_leaves_without_its_extension(path: str, body: bytes) -> None:
    plain = Draft(body=body).packet()
    packet = Draft(body=body, dead_letter_queue=path).packet()
    assert dead_letter_path_of(packet) == path
    assert dead_letter_path_of(plain) == ""
    assert without_extensions(packet) == without_extensions(plain) == plain
    assert decode(without_extensions(packet)) == decode(plain)


def test_bytes_that_are_no_extension_leave_with_their_message() -> None:
    plain = Draft().packet()
    packet = plain[:8] + (len(plain) + 8).to_bytes(4, "little") + plain[12:] + bytes(8)
    assert without_extensions(packet) == packet


def test_what_is_no_message_names_no_queue() -> None:
    assert dead_letter_path_of(b"nonsense") == ""
