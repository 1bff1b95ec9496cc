"""Tables fit their content, and nothing in a cell reaches the terminal as a command."""

from __future__ import annotations

import json

from openmsmq.cli.views.output import (
    ROWS_MAX_COUNT,
    count_text,
    print_facts,
    print_json,
    print_table,
    size_text,
)


def test_columns_are_aligned(capsys):
    print_table(("Name", ">Count"), [["a", "1"], ["longer", "1000"]])
    assert capsys.readouterr().out == "Name    Count\na           1\nlonger   1000\n"


def test_no_rows_are_no_table(capsys):
    assert print_table(("Name",), []) == 0
    assert capsys.readouterr().out == ""


def test_a_long_list_is_several_tables(capsys):
    assert print_table(("Name",), ([str(n)] for n in range(ROWS_MAX_COUNT + 1))) == 1001
    assert capsys.readouterr().out.count("Name") == 2


def test_cells_and_facts_are_made_harmless(capsys):
    print_table(("Name",), [["\x1b[2J"]])
    print_facts("\x07", [("name", "a\r\nb\x1b")])
    assert not set("\x1b\x07\r") & set(capsys.readouterr().out)


def test_json_lines_hold_nothing_that_a_terminal_would_obey(capsys):
    label = "a\x1b\x7f\x85\u202e\U0001f600\u00e9\ud800"
    print_json({"label": label})
    line = capsys.readouterr().out
    assert line.removesuffix("\n").isprintable()
    assert json.loads(line) == {"label": label}


def test_numbers_are_said_as_people_say_them():
    assert [size_text(n) for n in (0, 1023, 1536, 3 << 20, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "3.0 MiB",
        "5.0 GiB",
    ]
    assert (count_text(0), count_text(1)) == ("0 messages", "1 message")
