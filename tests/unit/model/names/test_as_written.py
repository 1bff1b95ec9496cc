"""Names as programs for Windows write them: each names the queue that its canonical form names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    IllegalFormatName,
    IllegalName,
    IllegalPathName,
    LocalQueueName,
    PathName,
    UnsupportedName,
    is_format_name,
    read_name,
    read_path,
)
from tests.strategies.names import computer_names, format_names, path_names, queue_names


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (r"FormatName:DIRECT=OS:beta\private$\orders", r"DIRECT=OS:beta\PRIVATE$\orders"),
        (r"formatname:direct=tcp:10.0.0.7\Private$\Orders", r"DIRECT=TCP:10.0.0.7\PRIVATE$\Orders"),
        (r".\Private$\orders\Journal$", r".\private$\orders;journal"),
        (r"private$\orders\JOURNAL$", r".\private$\orders;journal"),
        (r"beta\orders\journal$", r"beta\orders;journal"),
        (r"FormatName:DIRECT=OS:beta\orders\Journal$", r"DIRECT=OS:beta\orders;JOURNAL"),
        (r".\Deadletter$", r".\system$;deadletter"),
        (r"beta\DeadLetter$", r"beta\system$;deadletter"),
        (r".\XactDeadletter$", r".\system$;deadxact"),
        (r".\Journal$", r".\system$;journal"),
        ("Deadletter$", r".\system$;deadletter"),
        (r"DIRECT=OS:.\XactDeadletter$", r"DIRECT=OS:.\SYSTEM$;DEADXACT"),
        (r".\private$\my orders", r".\private$\my orders"),
        (r"DIRECT=OS:beta\my orders;too late", r"DIRECT=OS:beta\my orders;too late"),
        (r".\private$\a=b", r".\private$\a=b"),
    ],
)
def test_a_name_as_programs_write_it_is_printed_as_everybody_writes_it(
    written: str, canonical: str
) -> None:
    found = read_name(written)

    assert str(found) == canonical
    assert read_name(canonical) == found


@given(format_names(), st.sampled_from(["", "FormatName:", "FORMATNAME:", "formatname:"]))
def test_a_format_name_is_the_same_with_and_without_the_word_before_it(
    name: FormatName, prefix: str
) -> None:
    assert read_name(f"{prefix}{name}") == name


@given(path_names())
def test_a_path_name_is_never_taken_for_a_format_name(name: PathName) -> None:
    assert not is_format_name(str(name))
    assert read_name(str(name)) == name


@given(
    computer_names(),
    queue_names(),
    st.booleans(),
    st.sampled_from([r"\Journal$", r"\journal$", r"\JOURNAL$"]),
)
def test_the_journal_of_a_queue_has_two_spellings(
    computer: str, name: str, private: bool, suffix: str
) -> None:
    queue = LocalQueueName(name, private)
    journal = LocalQueueName(name, private, journal=True)

    assert read_name(f"{computer}\\{queue.path_text}{suffix}") == PathName(computer, journal)


@pytest.mark.parametrize("host", [".", "localhost", "LocalHost"])
def test_two_words_mean_the_computer_at_hand(host: str) -> None:
    direct = read_name(rf"DIRECT=OS:{host}\private$\orders")
    path = read_name(rf"{host}\private$\orders")

    assert isinstance(direct, DirectFormatName)
    assert direct.is_local
    assert isinstance(path, PathName)
    assert path.is_local


@pytest.mark.parametrize("text", [r"DIRECT=OS:beta\private$\q", r"DIRECT=TCP:127.0.0.1\q"])
def test_other_computers_are_not_the_one_at_hand(text: str) -> None:
    found = read_name(text)

    assert isinstance(found, DirectFormatName)
    assert not found.is_local


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        (r"FormatName:.\private$\orders", 11, "a format name begins with one of DIRECT="),
        ("FormatName:DIRECT=OS:beta", 25, r"after the computer comes '\' and the queue"),
        (r".\private$\orders;journal\Journal$", 25, "a journal has no journal of its own"),
        (r".\system$;journal\Journal$", 17, "a journal has no journal of its own"),
        ("Label:orders", 0, "a label opens no queue"),
    ],
)
def test_what_is_no_name_is_explained_at_its_place(text: str, position: int, problem: str) -> None:
    with pytest.raises((IllegalPathName, IllegalFormatName, UnsupportedName)) as caught:
        read_name(text)

    assert caught.value.position == position
    assert problem in caught.value.problem


@pytest.mark.parametrize("text", [r"OS:h\orders\Journal$", r"OS:h\private$\orders\Journal$"])
def test_packets_do_not_write_names_like_that(text: str) -> None:
    with pytest.raises(IllegalName):
        DirectFormatName.from_wire_text(text)


def test_a_path_is_also_read_from_a_direct_name() -> None:
    assert read_path(r"FormatName:DIRECT=OS:h\private$\q") == PathName.parse(r"h\private$\q")
    for text in ("PUBLIC=0f7c2894-f918-4e96-a4bb-93e2b3cfd18f", r"DIRECT=HTTP://h/MSMQ/q"):
        with pytest.raises(IllegalPathName, match="a path name is needed here"):
            read_path(text)
