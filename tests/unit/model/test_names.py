"""Names as values: they survive printing and reading, and no text breaks the readers."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openmsmq.model.names import (
    DirectFormatName,
    DirectProtocol,
    FormatName,
    IllegalName,
    IllegalPathName,
    LocalQueueName,
    PathName,
    SystemQueue,
    parse_format_name,
)
from tests.strategies.names import (
    direct_format_names,
    format_names,
    ip_addresses,
    local_queue_names,
    near,
    path_names,
    queues_on_computer,
)


def read_any(text: str) -> list[FormatName | PathName]:
    """Let every reader read the text; whatever is no name must come out as `IllegalName`."""
    values: list[FormatName | PathName] = []
    flaws: list[IllegalName] = []
    for read in (parse_format_name, PathName.parse, DirectFormatName.from_wire_text):
        try:
            values.append(read(text))
        except IllegalName as flaw:
            flaws.append(flaw)
    for caught in flaws:
        assert caught.text == text
        assert 0 <= caught.position <= len(text)
        assert str(caught).startswith(caught.problem)
    return values


# What is printed is read again.


@given(format_names())
def test_a_format_name_survives_printing_and_parsing(name: FormatName) -> None:
    assert parse_format_name(str(name)) == name


@given(path_names())
def test_a_path_name_survives_printing_and_parsing(name: PathName) -> None:
    assert PathName.parse(str(name)) == name


@given(direct_format_names(), st.sampled_from(["", "DIRECT=", "direct=", "Direct="]))
def test_a_direct_name_survives_the_wire_with_and_without_its_keyword(
    name: DirectFormatName, prefix: str
) -> None:
    assert str(name) == f"DIRECT={name.wire_text}"
    assert DirectFormatName.from_wire_text(prefix + name.wire_text) == name


@given(near(format_names().map(str) | path_names().map(str)))
def test_printing_what_was_parsed_is_stable(text: str) -> None:
    for value in read_any(text):
        read = PathName.parse if isinstance(value, PathName) else parse_format_name
        assert read(str(value)) == value
        assert str(read(str(value))) == str(value)


@given(format_names() | path_names())
def test_names_are_hashable_and_survive_pickling(name: FormatName | PathName) -> None:
    twin = pickle.loads(pickle.dumps(name))
    assert twin == name
    assert len({twin, name}) == 1


# No text breaks a reader.


@given(st.text())
@example("\ud800")
@example("DIRECT=OS:h\\\udfff")
@example("MULTICAST=234.1.1.1:" + "9" * 900)
@example("DIRECT=HTTP://h:" + "0" * 900 + "/msmq/q")
@example("DIRECT=TCP:" + "[" * 400 + "::1" + "]" * 400 + "\\q")
@example("DIRECT=TCP:\u0661.1.1.1\\q")
@example("MULTICAST=234.1.1.1:\u0661")
@example("PRIVATE=00000000-0000-0000-0000-000000000000\\\u0661")
def test_any_text_is_a_name_or_illegal(text: str) -> None:
    read_any(text)


@given(near(format_names().map(str) | path_names().map(str)))
def test_any_text_that_is_nearly_a_name_is_a_name_or_illegal(text: str) -> None:
    read_any(text)


@pytest.mark.parametrize("character", ["a", "\\", ";", ",", "=", ":", "[", "{", "/", "0", "é"])
@pytest.mark.parametrize("start", ["", "DIRECT=OS:", "DIRECT=TCP:", "DIRECT=HTTP://", "DL=", "h\\"])
def test_long_texts_are_refused_in_time_linear_in_their_length(start: str, character: str) -> None:
    # A reader that is quadratic in the length would run into the timeout of the test run.
    assert read_any(start + 1_000_000 * character) == []


@pytest.mark.parametrize("element", ["DL=00000000-0000-0000-0000-000000000000", "", "DIRECT=OS:h"])
def test_long_lists_are_refused_in_time_linear_in_their_length(element: str) -> None:
    assert read_any(",".join([element] * 50_000)) == []


# Which names mean the same queue.


@given(format_names() | path_names())
def test_a_name_in_other_letter_case_names_the_same_queue(name: FormatName | PathName) -> None:
    text = "".join(c.swapcase() if c.isascii() else c for c in str(name))
    twin = PathName.parse(text) if isinstance(name, PathName) else parse_format_name(text)
    assert twin.key == name.key


@given(local_queue_names(), local_queue_names())
def test_queue_names_that_differ_beyond_case_are_different_queues(
    one: LocalQueueName, other: LocalQueueName
) -> None:
    same = [one.private, one.journal, one.name.casefold(), (one.subqueue or "").casefold()] == [
        other.private,
        other.journal,
        other.name.casefold(),
        (other.subqueue or "").casefold(),
    ]
    assert same or one.key != other.key


def test_a_sharp_s_and_two_letters_s_are_different_queues() -> None:
    assert PathName.parse("h\\straße").key != PathName.parse("h\\strasse").key


def test_both_small_sigmas_and_the_capital_one_are_the_same_letter() -> None:
    keys = {PathName.parse(f"h\\{name}").key for name in ("ΟΔΟΣ", "οδος", "οδοσ")}
    assert len(keys) == 1


def test_a_public_and_a_private_queue_of_one_name_are_different_queues() -> None:
    assert PathName.parse("h\\q").key != PathName.parse("h\\private$\\q").key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("DIRECT=TCP:FE80:0:0:0:0:0:0:1\\q", "DIRECT=TCP:fe80::1\\Q"),
        ("DIRECT=HTTP://[0:0:0:0:0:0:0:1]/MSMQ/q", "DIRECT=HTTP://[::1]/MSMQ/q"),
        ("DIRECT=HTTP://h/MSMQ/q", "DIRECT=HTTP://h:80/MSMQ/q"),
        ("DIRECT=HTTPS://h/MSMQ/q", "DIRECT=HTTPS://h:443/MSMQ/q"),
    ],
)
def test_other_spellings_of_an_address_name_the_same_queue(one: str, other: str) -> None:
    assert parse_format_name(one) != parse_format_name(other)
    assert parse_format_name(one).key == parse_format_name(other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("DIRECT=HTTP://h/MSMQ/q", "DIRECT=HTTP://h:443/MSMQ/q"),
        ("DIRECT=HTTP://h:8080/MSMQ/q", "DIRECT=HTTPS://h:8080/MSMQ/q"),
        ("DIRECT=OS:h\\q", "DIRECT=OS:h\\q;JOURNAL"),
        ("DIRECT=OS:h\\q;JOURNAL", "DIRECT=OS:h\\SYSTEM$;JOURNAL"),
        ("DIRECT=OS:10.0.0.1\\q", "DIRECT=TCP:10.0.0.1\\q"),
    ],
)
def test_names_of_different_queues_have_different_keys(one: str, other: str) -> None:
    assert parse_format_name(one).key != parse_format_name(other).key


# Values made without text obey the same rules.


def can_be_made(name: str, private: bool) -> bool:
    try:
        LocalQueueName(name, private)
    except IllegalPathName:
        return False
    return True


def can_be_read(name: str, private: bool) -> bool:
    try:
        queue = PathName.parse("h\\" + ("private$\\" if private else "") + name).queue
    except IllegalPathName:
        return False
    return queue.path_text == ("private$\\" if private else "") + name and ";" not in name


@given(near(local_queue_names().map(lambda queue: queue.name)), st.booleans())
@example("private$\\q", False)
@example("Private$", True)
@example("q;s", False)
def test_a_queue_name_can_be_made_if_and_only_if_it_can_be_read(name: str, private: bool) -> None:
    if not name.lower().startswith("private$\\"):
        assert can_be_made(name, private) == can_be_read(name, private)
    else:
        assert not can_be_made(name, private)


@pytest.mark.parametrize(
    ("computer", "position"), [("", 0), ("a\\b", 1), ("a=b", 1), ("Private$", 0), ("x" * 257, 256)]
)
def test_no_path_name_has_a_computer_that_could_not_be_read(computer: str, position: int) -> None:
    with pytest.raises(IllegalPathName) as caught:
        PathName(computer, LocalQueueName("q"))
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("protocol", "host", "port", "position"),
    [
        (DirectProtocol.OS, "a,b", None, 1),
        (DirectProtocol.OS, "host", 1801, 0),
        (DirectProtocol.TCP, "host", None, 0),
        (DirectProtocol.TCP, "[::1]", None, 0),
        (DirectProtocol.HTTP, "a:80", None, 1),
        (DirectProtocol.HTTP, "[::1]", None, 0),
        (DirectProtocol.HTTP, "user@host", None, 4),
        (DirectProtocol.HTTPS, "host", 65536, 0),
        (DirectProtocol.HTTPS, "host", -1, 0),
    ],
)
def test_no_direct_name_has_an_address_that_could_not_be_read(
    protocol: DirectProtocol, host: str, port: int | None, position: int
) -> None:
    with pytest.raises(IllegalName) as caught:
        DirectFormatName(protocol, host, LocalQueueName("q"), port)
    assert caught.value.position == position


@pytest.mark.parametrize("queue", [LocalQueueName("a/b"), LocalQueueName("a", subqueue="b/c")])
def test_no_queue_in_a_url_has_a_slash_in_its_name(queue: LocalQueueName) -> None:
    with pytest.raises(IllegalName, match="cannot contain '/'"):
        DirectFormatName(DirectProtocol.HTTP, "h", queue)
    assert DirectFormatName(DirectProtocol.OS, "h", queue).queue == queue


@given(queues_on_computer(), ip_addresses())
def test_the_direct_name_of_a_path_name_reaches_the_same_queue(
    queue: LocalQueueName | SystemQueue, computer: str
) -> None:
    path = PathName(computer, queue)
    direct = DirectFormatName.from_path(path)
    assert (direct.protocol, direct.host, direct.queue) == (DirectProtocol.OS, computer, queue)
    assert parse_format_name(f"DIRECT=OS:{path}") == direct
