"""Hexadecimal is read in all the forms in which people and tools write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.cli.tools.hex_text import HexTextError, parse_hex

same_bytes = st.builds(
    lambda byte, count: bytes([byte]) * count, st.integers(0, 255), st.integers(30, 100)
)
data_with_runs = st.lists(st.binary(max_size=40) | same_bytes).map(b"".join).filter(bool)


def letters(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


def rows_of(data: bytes) -> list[tuple[int, bytes]]:
    return [(at, data[at : at + 16]) for at in range(0, len(data), 16)]


def as_hexdump(data: bytes) -> str:
    """As `hexdump -C` writes it: two halves, repeated rows left out, the size at the end."""
    lines, before = [], b""
    for at, row in rows_of(data):
        if row == before:
            if lines[-1] != "*":
                lines.append("*")
            continue
        before = row
        halves = f"{row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}"
        lines.append(f"{at:08x}  {halves}  |{letters(row)}|")
    return "\n".join([*lines, f"{len(data):08x}"])


def as_xxd(data: bytes) -> str:
    return "\n".join(
        f"{at:08x}: {row.hex(' ', -2):<39}  {letters(row)}" for at, row in rows_of(data)
    )


def as_wireshark(data: bytes) -> str:
    return "\n".join(f"{at:04x}   {row.hex(' '):<47}   {letters(row)}" for at, row in rows_of(data))


WRITERS = {
    "bare digits": bytes.hex,
    "bytes with spaces": lambda data: data.hex(" "),
    "lines with a comment": lambda data: "# a packet\n\n" + data.hex(" ").replace(" 4", "\n4"),
    "colons": lambda data: data.hex(":").upper(),
    "an array in C": lambda data: ", ".join(f"0x{byte:02x}" for byte in data),
    "a string in C": lambda data: '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"',
    "hexdump -C": as_hexdump,
    "xxd": as_xxd,
    "wireshark": as_wireshark,
    "an offset and one space": lambda data: "\n".join(
        f"{at:06X} {row.hex(' ')}" for at, row in rows_of(data)
    ),
}


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
@given(data=data_with_runs)
def test_every_form_is_read(writer, data):
    assert parse_hex(writer(data)) == [data]


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=3))
def test_several_dumps_are_several_runs(runs):
    assert parse_hex("\n\n".join(map(as_wireshark, runs))) == runs


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_its_line(text):
    try:
        runs = parse_hex(text)
    except HexTextError as error:
        assert 1 <= error.line <= max(1, len(text.splitlines()))  # noqa: PT017
    else:
        assert all(isinstance(run, bytes) for run in runs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: there is nothing to read"),
        ("# only a comment", "line 1: there is nothing to read"),
        ("10 00\nhello", "line 2: 'hello' is not hexadecimal"),
        ("10 0", "line 1: 3 digits, an odd number; one is missing"),
        ("0000  10 00\n0010  10 00", "line 2: offset 0x10, but 0x2 bytes come before it"),
        ("0000  10 zz", "line 1: 'zz' is not hexadecimal"),
        ("0000  10 00\n*", "line 1: '*' without an offset behind it that can be reached"),
        ("x" * 50, "line 1: '" + "x" * 40 + "…' is not hexadecimal"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, message):
    with pytest.raises(HexTextError) as caught:
        parse_hex(text)
    assert str(caught.value) == message


def test_zeros_at_the_start_of_bare_digits_are_bytes():
    assert parse_hex("0000 4855 0400") == [bytes.fromhex("000048550400")]


def test_a_dump_with_a_line_that_belongs_to_no_dump_is_refused():
    with pytest.raises(HexTextError):
        parse_hex("0000   10 00\nwhat?")
