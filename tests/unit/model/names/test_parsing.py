"""Which texts are names: the grammar of the specification, and our decisions where it fails.

The regular expressions here are written from the grammar, not from the code, so the two check
each other on texts that are names or miss being one by a few characters.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.model.names import (
    ConnectorFormatName,
    DirectFormatName,
    DirectProtocol,
    DistributionListFormatName,
    IllegalFormatName,
    IllegalName,
    LocalQueueName,
    MachineFormatName,
    MulticastFormatName,
    MultipleFormatName,
    PathName,
    PrivateFormatName,
    PublicFormatName,
    SystemQueue,
    UnsupportedName,
    parse_format_name,
)
from tests.strategies import names as a

GUID_TEXT = "0f7c2894-f918-4e96-a4bb-93e2b3cfd18f"
GUID = Guid.parse(GUID_TEXT)

# Plain letters and what the grammar gives a meaning to.
COMPUTER = r"(?:(?![\\/;,=\"])[\x21-\x7e]){1,256}"
LETTER = r"[\x21\x23-\x2a\x2d-\x3a\x3c-\x5b\x5d-\x7f]"
# Beyond the grammar, as queue managers have it in practice: spaces inside.
INNER = r"[\x20\x21\x23-\x2a\x2d-\x3a\x3c-\x5b\x5d-\x7f]"
SUBQUEUE = rf"(?!(?:journal|deadletter|deadxact)(?:;|\Z))(?! ){INNER}{{0,31}}{LETTER}"
NAME = rf"(?! ){INNER}{{0,123}}{LETTER}"
QUEUE = rf"(?!(?:private|system)\$(?:;|\Z)){NAME}(?:;{SUBQUEUE})?(?:;journal)?"
TAIL = rf"(?:private\$\\)?{QUEUE}|system\$;(?:journal|deadletter|deadxact)"
HEX = r"[0-9a-f]"
GUID_RULE = rf"{HEX}{{8}}-(?:{HEX}{{4}}-){{3}}{HEX}{{12}}"
OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
PORT = (
    r"(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9][0-9]|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9]?[0-9]{1,3})"
)
PUBLIC = rf"public={GUID_RULE}(?:;journal)?"
PRIVATE = rf"private={GUID_RULE}\\{HEX}{{1,8}}(?:;journal)?"
DISTRIBUTION_LIST = rf"dl={GUID_RULE}(?:@[\x21-\x2b\x2d-\x7e]{{1,255}})?"
MACHINE = rf"machine={GUID_RULE};(?:journal|deadletter|deadxact)"
CONNECTOR = rf"connector={GUID_RULE}(?:;xactonly)?"
# The port rule must not let "007" through: no leading zeros.
MULTICAST = rf"multicast=(?:22[4-9]|23[0-9])\.{OCTET}\.{OCTET}\.{OCTET}:(?!0[0-9]){PORT}"
DIRECT_OS = rf"direct=os:{COMPUTER}\\(?:{TAIL})"
DIRECT_IPV4 = rf"direct=tcp:{OCTET}\.{OCTET}\.{OCTET}\.{OCTET}\\(?:{TAIL})"
PATH = rf"(?!private\$\\){COMPUTER}\\(?:{TAIL})"
LOCAL_PATH = rf"(?!.*/)(?:{TAIL})"


def matches(rule: str, text: str) -> bool:
    return re.fullmatch(rule, text, re.IGNORECASE | re.ASCII | re.DOTALL) is not None


def is_format_name(text: str) -> bool:
    try:
        parse_format_name(text)
    except IllegalName:
        return False
    return True


def is_path_name(text: str) -> bool:
    try:
        PathName.parse(text)
    except IllegalName:
        return False
    return True


def near_ascii(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return a.near(texts.filter(str.isascii)).filter(str.isascii)


def simple_paths() -> st.SearchStrategy[str]:
    """Short names and names at the limits, with every combination of suffixes."""
    word = st.sampled_from(
        ["q", "order_queue$", "a/b", "x" * 124, "private$", "system$", "y" * 125]
    )
    sub = st.sampled_from(["", ";s", ";journal", ";s;journal", ";" + "z" * 32, ";" + "z" * 33])
    area = st.sampled_from(["", "private$\\", "system$;", "system$;journal", "system$;deadxact"])
    return st.tuples(area, word, sub).map("".join) | area


# Each kind by its grammar.


@pytest.mark.spec("MQMQ-2.1.1-01")
@given(
    near_ascii(
        st.tuples(
            st.sampled_from(["", "h\\", ".\\", "c" * 256 + "\\", "c" * 257 + "\\"]), simple_paths()
        ).map("".join)
    )
)
def test_path_names_are_what_the_grammar_says(text: str) -> None:
    assert is_path_name(text) == (matches(PATH, text) or matches(LOCAL_PATH, text))


@pytest.mark.spec("MQMQ-2.1.2-01")
@given(
    near_ascii(
        st.tuples(
            st.sampled_from(
                [
                    "DIRECT=OS:h\\",
                    "DIRECT=TCP:10.0.0.1\\",
                    f"DIRECT=OS:{'c' * 256}\\",
                    "DIRECT=OS:.\\",
                ]
            ),
            simple_paths(),
        ).map("".join)
    )
)
def test_direct_names_are_what_the_grammar_says(text: str) -> None:
    if text.lower().startswith("direct=tcp:") and ":" in text.partition("\\")[0][11:]:
        return  # This may be IPv6, which has its own tests.
    expected = matches(DIRECT_OS, text) or matches(DIRECT_IPV4, text)
    assert is_format_name(text) == expected


@pytest.mark.spec("MQMQ-2.1.3-01")
@given(near_ascii(a.public_format_names().map(str)))
def test_public_names_are_what_the_grammar_says(text: str) -> None:
    assert is_format_name(text) == matches(PUBLIC, text)


@pytest.mark.spec("MQMQ-2.1.4-01")
@given(near_ascii(a.private_format_names().map(str)))
def test_private_names_are_what_the_grammar_says(text: str) -> None:
    assert is_format_name(text) == matches(PRIVATE, text)


@pytest.mark.spec("MQMQ-2.1.5-01")
@given(near_ascii(a.distribution_list_format_names().map(str)))
def test_distribution_list_names_are_what_the_grammar_says(text: str) -> None:
    if "," not in text:
        assert is_format_name(text) == matches(DISTRIBUTION_LIST, text)


@pytest.mark.spec("MQMQ-2.1.6-01")
@given(
    near_ascii(
        st.one_of(
            a.machine_format_names(), a.connector_format_names(), a.multicast_format_names()
        ).map(str)
    )
)
def test_machine_connector_and_multicast_names_are_what_the_grammar_says(text: str) -> None:
    expected = any(matches(rule, text) for rule in (MACHINE, CONNECTOR, MULTICAST))
    assert is_format_name(text) == expected


@pytest.mark.spec("MQMQ-2.1.7-01")
@given(st.lists(a.single_format_names(), min_size=2, max_size=4))
def test_several_names_make_one_if_and_only_if_none_is_read_only(
    elements: list[object],
) -> None:
    text = ",".join(map(str, elements))
    if any(name.is_read_only for name in elements):  # type: ignore[attr-defined]
        with pytest.raises(IllegalFormatName, match="cannot be among several destinations"):
            parse_format_name(text)
    else:
        assert parse_format_name(text) == MultipleFormatName(tuple(elements))  # type: ignore[arg-type]


@pytest.mark.spec("MQMQ-2.1.7-01")
@pytest.mark.parametrize("text", [",", "DL={0},", ",DL={0}", "DL={0},,DL={0}", "DL={0}, DL={0}"])
def test_commas_stand_between_names_and_nowhere_else(text: str) -> None:
    assert not is_format_name(text.format(GUID_TEXT))
    assert is_format_name(f"DL={GUID_TEXT},DL={GUID_TEXT}")


# Examples that fix what each text means.

Q = LocalQueueName("q")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("DIRECT=OS:a04bm02\\q", DirectFormatName(DirectProtocol.OS, "a04bm02", Q)),
        (
            "direct=os:.\\Private$\\Orders",
            DirectFormatName(DirectProtocol.OS, ".", LocalQueueName("Orders", private=True)),
        ),
        (
            "DIRECT=TCP:10.1.2.3\\PRIVATE$\\order_queue$",
            DirectFormatName(
                DirectProtocol.TCP, "10.1.2.3", LocalQueueName("order_queue$", private=True)
            ),
        ),
        (
            "DIRECT=OS:h\\SYSTEM$;DEADXACT",
            DirectFormatName(DirectProtocol.OS, "h", SystemQueue.TRANSACTIONAL_DEAD_LETTER),
        ),
        (
            "DIRECT=OS:h\\q;sub;JOURNAL",
            DirectFormatName(
                DirectProtocol.OS, "h", LocalQueueName("q", subqueue="sub", journal=True)
            ),
        ),
        (
            "DIRECT=HTTPS://h:8443/msmq/private$/q",
            DirectFormatName(DirectProtocol.HTTPS, "h", LocalQueueName("q", private=True), 8443),
        ),
        (f"PUBLIC={GUID_TEXT.upper()}", PublicFormatName(GUID)),
        (f"PRIVATE={GUID_TEXT}\\0000001F", PrivateFormatName(GUID, 0x1F)),
        (f"MACHINE={GUID_TEXT};DEADLETTER", MachineFormatName(GUID, SystemQueue.DEAD_LETTER)),
        (f"CONNECTOR={GUID_TEXT}", ConnectorFormatName(GUID)),
        (f"DL={GUID_TEXT}@example.org", DistributionListFormatName(GUID, "example.org")),
        ("MULTICAST=234.1.1.1:8001", MulticastFormatName("234.1.1.1", 8001)),
    ],
)
def test_each_kind_of_name_means_what_it_says(text: str, name: object) -> None:
    assert parse_format_name(text) == name


def test_printing_keeps_the_case_of_names_and_raises_that_of_keywords() -> None:
    text = "direct=os:MyHost\\private$\\MyQueue;MySub;journal"
    assert str(parse_format_name(text)) == "DIRECT=OS:MyHost\\PRIVATE$\\MyQueue;MySub;JOURNAL"


def test_path_names_are_printed_with_their_keywords_in_lower_case() -> None:
    assert str(PathName.parse("H\\PRIVATE$\\Q;JOURNAL")) == "H\\private$\\Q;journal"
    assert str(PathName.parse("H\\SYSTEM$;DEADXACT")) == "H\\system$;deadxact"


def test_the_number_of_a_private_queue_is_printed_without_leading_zeros() -> None:
    assert str(PrivateFormatName(GUID, 0x1F)) == f"PRIVATE={GUID_TEXT}\\1f"
    assert str(PrivateFormatName(GUID, 0)) == f"PRIVATE={GUID_TEXT}\\0"


def test_keywords_are_made_of_ascii_letters_only() -> None:
    # The long s and the dotless i become keyword letters under other rules of case.
    assert not is_format_name("DIRECT=O\u017f:h\\q")
    assert not is_format_name("D\u0131RECT=OS:h\\q")


@pytest.mark.parametrize(
    ("text", "computer"),
    [
        ("orders", "."),
        ("private$\\orders", "."),
        ("PRIVATE$\\orders;rejected", "."),
        ("system$;journal", "."),
        (".\\orders", "."),
        ("host\\orders", "host"),
        ("host\\private$\\orders", "host"),
    ],
)
def test_a_path_name_without_a_computer_is_on_the_local_one(text: str, computer: str) -> None:
    path = PathName.parse(text)
    assert path.computer == computer
    assert path.is_local == (computer == ".")
    assert path.queue.path_text == text.lower().removeprefix(f"{computer}\\")


# Defects of the published grammar, and what we decided.


@pytest.mark.parametrize("suffix", ["", ";JOURNAL", ";journal"])
def test_public_names_take_the_journal_suffix_that_the_grammar_forgot(suffix: str) -> None:
    assert parse_format_name(f"PUBLIC={GUID_TEXT}{suffix}") == PublicFormatName(GUID, bool(suffix))


@pytest.mark.parametrize("queue", SystemQueue)
def test_machine_names_need_the_suffix_that_the_grammar_forgot(queue: SystemQueue) -> None:
    text = f"MACHINE={GUID_TEXT}"
    assert parse_format_name(f"{text};{queue.value}") == MachineFormatName(GUID, queue)
    assert not is_format_name(text)


def test_connector_names_take_the_suffix_that_the_grammar_forgot() -> None:
    name = parse_format_name(f"CONNECTOR={GUID_TEXT};XACTONLY")
    assert name == ConnectorFormatName(GUID, transactional=True)


@given(st.integers(0, 65535))
def test_every_port_is_a_multicast_port_though_the_grammar_skips_some(port: int) -> None:
    name = parse_format_name(f"MULTICAST=224.0.0.1:{port}")
    assert name == MulticastFormatName("224.0.0.1", port)


@given(st.sampled_from([str.lower, str.upper, str.swapcase]))
def test_hexadecimal_digits_have_any_case_though_the_grammar_lists_capitals(case: object) -> None:
    guid = case(GUID_TEXT)  # type: ignore[operator]
    assert parse_format_name(f"PUBLIC={guid}") == PublicFormatName(GUID)
    assert parse_format_name(f"PRIVATE={guid}\\aB") == PrivateFormatName(GUID, 0xAB)


def test_direct_names_take_a_subqueue_though_the_grammar_never_uses_its_rule() -> None:
    name = parse_format_name("DIRECT=OS:h\\private$\\orders;rejected")
    queue = LocalQueueName("orders", private=True, subqueue="rejected")
    assert name == DirectFormatName(DirectProtocol.OS, "h", queue)


@pytest.mark.parametrize("kind", ["PUBLIC={0};sub", "PRIVATE={0}\\1;sub"])
def test_only_direct_names_and_path_names_have_subqueues(kind: str) -> None:
    with pytest.raises(IllegalFormatName, match="only ;JOURNAL can follow"):
        parse_format_name(kind.format(GUID_TEXT))


def test_journal_after_a_queue_name_is_its_journal_and_never_a_subqueue() -> None:
    assert PathName.parse("h\\q;journal").queue == LocalQueueName("q", journal=True)
    for name in ("journal", "Journal", "deadletter", "DEADXACT"):
        with pytest.raises(IllegalName, match="reserved"):
            LocalQueueName("q", subqueue=name)


@pytest.mark.parametrize("protocol", ["IPX", "SPX", "ipx", "Spx"])
@pytest.mark.parametrize("address", ["00000012:00a0c9b1f2e3", "00000012.00A0C9B1F2E3"])
def test_ipx_by_either_name_and_spelling_is_known_and_unsupported(
    protocol: str, address: str
) -> None:
    text = f"DIRECT={protocol}:{address}\\PRIVATE$\\q"
    with pytest.raises(UnsupportedName, match="not supported: use TCP or OS") as caught:
        parse_format_name(text)
    assert caught.value.position == 7


def test_letters_beyond_ascii_are_accepted_though_the_grammar_has_none() -> None:
    path = PathName.parse("Rechner-Ü\\private$\\Aufträge")
    assert (path.computer, path.queue) == ("Rechner-Ü", LocalQueueName("Aufträge", private=True))


@pytest.mark.parametrize("character", list('\\;+,"'))
def test_queue_names_exclude_what_versions_since_two_exclude(character: str) -> None:
    with pytest.raises(IllegalName, match="a queue name cannot contain"):
        LocalQueueName(f"a{character}b")


def test_a_computer_name_ends_at_the_backslash_though_the_grammar_lets_it_contain_one() -> None:
    assert not is_path_name("a\\b\\q")
    assert PathName.parse("a\\b") == PathName("a", LocalQueueName("b"))


@pytest.mark.parametrize("name", ["private$", "Private$", "system$"])
def test_the_words_for_areas_are_no_queue_names_though_the_grammar_allows_them(name: str) -> None:
    assert not is_path_name(f"h\\{name}")
    assert not is_path_name(f"h\\private$\\{name}")


@pytest.mark.parametrize(
    ("name", "units", "accepted"),
    [("x", 124, True), ("x", 125, False), ("😀", 62, True), ("😀", 63, False)],
)
def test_lengths_count_utf16_code_units(name: str, units: int, accepted: bool) -> None:
    assert is_path_name("h\\" + name * units) == accepted


# Addresses.


@pytest.mark.parametrize("address", ["::1", "fe80::1%eth0", "2001:DB8::10.0.0.1", "::ffff:1.2.3.4"])
def test_tcp_takes_ipv6_without_brackets_and_prints_it_so(address: str) -> None:
    name = parse_format_name(f"DIRECT=TCP:{address}\\q")
    assert name == DirectFormatName(DirectProtocol.TCP, address, Q)
    assert parse_format_name(f"DIRECT=TCP:[{address}]\\q") == name
    assert str(name) == f"DIRECT=TCP:{address}\\q"


@pytest.mark.parametrize(
    "address", ["[10.0.0.1]", "[[::1]]", "[::1", "::1]", "[]", "[:]", "01.2.3.4"]
)
def test_tcp_takes_no_other_brackets_and_no_other_addresses(address: str) -> None:
    with pytest.raises(IllegalFormatName):
        parse_format_name(f"DIRECT=TCP:{address}\\q")


def test_urls_have_ipv6_in_brackets() -> None:
    name = parse_format_name("DIRECT=HTTP://[fe80::1]:8080/MSMQ/q")
    assert name == DirectFormatName(DirectProtocol.HTTP, "fe80::1", Q, 8080)
    assert str(name) == "DIRECT=HTTP://[fe80::1]:8080/MSMQ/q"


@pytest.mark.parametrize(
    "text",
    [
        "DIRECT=HTTP://h/MSMQ/PRIVATE$/q",
        "direct=http://h/msmq/private$/q",
        "DIRECT=HTTP://h/MSMQ\\PRIVATE$\\q",
        "DIRECT=HTTP://h/MSMQ/PRIVATE$\\q",
        "DIRECT=HTTP://h:/MSMQ/PRIVATE$/q",
    ],
)
def test_urls_take_slashes_or_backslashes_after_msmq_and_print_slashes(text: str) -> None:
    assert str(parse_format_name(text)) == "DIRECT=HTTP://h/MSMQ/PRIVATE$/q"


@pytest.mark.parametrize(("scheme", "port"), [("HTTP", 80), ("HTTPS", 443)])
def test_urls_without_a_port_have_that_of_their_protocol(scheme: str, port: int) -> None:
    name = DirectFormatName.from_wire_text(f"{scheme}://h/MSMQ/q")
    assert (name.port, name.port_or_default) == (None, port)
    assert DirectFormatName.from_wire_text(f"{scheme}://h:81/MSMQ/q").port_or_default == 81


def test_other_direct_names_have_no_port() -> None:
    assert DirectFormatName.from_wire_text("OS:h\\q").port_or_default is None


# What can be done with a name.


@pytest.mark.parametrize(
    ("text", "read_only", "send", "receive"),
    [
        ("DIRECT=OS:h\\q", False, True, True),
        ("DIRECT=TCP:10.0.0.1\\PRIVATE$\\q", False, True, True),
        ("DIRECT=OS:h\\q;sub", False, False, True),
        ("DIRECT=OS:h\\q;JOURNAL", True, False, True),
        ("DIRECT=OS:h\\SYSTEM$;DEADLETTER", True, False, True),
        ("DIRECT=HTTP://h/MSMQ/q", False, True, False),
        ("DIRECT=HTTPS://h/MSMQ/q", False, True, False),
        ("DIRECT=HTTPS://h/MSMQ/SYSTEM$;JOURNAL", True, False, False),
        ("PUBLIC={0}", False, True, True),
        ("PUBLIC={0};JOURNAL", True, False, True),
        ("PRIVATE={0}\\1", False, True, True),
        ("PRIVATE={0}\\1;JOURNAL", True, False, True),
        ("MACHINE={0};DEADXACT", True, False, True),
        ("CONNECTOR={0}", False, False, True),
        ("MULTICAST=234.1.1.1:8001", False, True, False),
        ("DL={0}", False, True, False),
        ("DL={0},PUBLIC={0}", False, True, False),
        ("DL={0},CONNECTOR={0}", False, False, False),
        ("DL={0},DIRECT=OS:h\\q;sub", False, False, False),
    ],
)
def test_a_name_tells_for_what_it_can_be_opened(
    text: str, read_only: bool, send: bool, receive: bool
) -> None:
    name = parse_format_name(text.format(GUID_TEXT))
    assert name.is_read_only == read_only
    assert name.openable_for_send == send
    assert name.openable_for_receive == receive
