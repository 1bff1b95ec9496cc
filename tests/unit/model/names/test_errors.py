"""What is said about texts that are no names: what is wrong, where, and what would be right."""

from __future__ import annotations

import pytest

from openmsmq.model.identity import Guid
from openmsmq.model.names import (
    DirectFormatName,
    DirectProtocol,
    IllegalFormatName,
    IllegalName,
    IllegalPathName,
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

G = "0f7c2894-f918-4e96-a4bb-93e2b3cfd18f"


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "begins with one of DIRECT=, PUBLIC=, PRIVATE=, MACHINE=, CONNECTOR="),
        ("host\\q", 0, "begins with one of"),
        ("FormatName:DIRECT=OS:h\\q", 0, "begins with one of"),
        (" DIRECT=OS:h\\q", 0, "begins with one of"),
        ("DIRECT=", 7, "after DIRECT= comes OS:, TCP:, HTTP:// or HTTPS://"),
        ("DIRECT=host\\q", 7, "after DIRECT= comes OS:"),
        ("DIRECT=FTP:h\\q", 7, "after DIRECT= comes OS:"),
        ("DIRECT=DIRECT=OS:h\\q", 7, "after DIRECT= comes OS:"),
        ("DIRECT=OS:", 10, r"after the computer comes '\' and the queue"),
        ("DIRECT=OS:host", 14, r"after the computer comes '\' and the queue"),
        ("DIRECT=OS:\\q", 10, "a computer name is missing"),
        ("DIRECT=OS:my host\\q", 12, "a computer name cannot contain ' '"),
        ("DIRECT=OS:h/q\\r", 11, "a computer name cannot contain '/'"),
        (f"DIRECT=OS:{'h' * 257}\\q", 266, "a computer name has at most 256 characters"),
        ("DIRECT=OS:h\\", 12, "a queue name is missing"),
        ("DIRECT=OS:h\\ ab", 12, "a queue name cannot begin or end with a space"),
        ("DIRECT=OS:h\\ab ", 14, "a queue name cannot begin or end with a space"),
        ("DIRECT=OS:h\\q;s ", 15, "a subqueue name cannot begin or end with a space"),
        ("DIRECT=OS:h\\a+b", 13, "a queue name cannot contain '+'"),
        ("DIRECT=OS:h\\a\\b", 13, "a queue name cannot contain '\\'"),
        ("DIRECT=OS:h\\a\ud800", 13, "a queue name cannot contain '\\ud800'"),
        ("DIRECT=OS:h\\private$", 20, "a queue name is missing after private$"),
        ("DIRECT=OS:h\\private$\\", 21, "a queue name is missing"),
        (f"DIRECT=OS:h\\{'q' * 125}", 136, "a queue name has at most 124 characters"),
        ("DIRECT=OS:h\\q;", 14, "a subqueue name is missing"),
        (f"DIRECT=OS:h\\q;{'s' * 33}", 46, "a subqueue name has at most 32 characters"),
        ("DIRECT=OS:h\\q;s;t", 15, "after a subqueue name only ;JOURNAL can follow"),
        ("DIRECT=OS:h\\q;JOURNAL;s", 14, "JOURNAL is no subqueue name"),
        ("DIRECT=OS:h\\q;deadletter", 14, "deadletter is no subqueue name"),
        ("DIRECT=OS:h\\SYSTEM$", 19, "after SYSTEM$ comes ;JOURNAL, ;DEADLETTER or ;DEADXACT"),
        ("DIRECT=OS:h\\SYSTEM$;q", 20, "after SYSTEM$ comes ;JOURNAL"),
        ("DIRECT=OS:h\\SYSTEM$;JOURNAL;q", 20, "after SYSTEM$ comes ;JOURNAL"),
        ("DIRECT=TCP:host\\q", 11, "host is no IP address: use OS: for a computer name"),
        ("DIRECT=TCP:1.2.3.256\\q", 11, "1.2.3.256 is no IP address"),
        ("DIRECT=TCP:[::g]\\q", 12, "::g is no IP address"),
        ("DIRECT=TCP:1.2.3.4 \\q", 18, "a computer name cannot contain ' '"),
        ("DIRECT=HTTP:h/MSMQ/q", 12, "after HTTP: comes // and the computer"),
        ("DIRECT=HTTP://h", 15, "after the computer comes /MSMQ/ and the queue"),
        ("DIRECT=HTTP://h/q", 15, "after the computer comes /MSMQ/ and the queue"),
        ("DIRECT=HTTP://h/MSMQ", 20, "after /MSMQ comes '/' and the queue"),
        ("DIRECT=HTTP://h/MSMQX/q", 20, "after /MSMQ comes '/' and the queue"),
        ("DIRECT=HTTP://h/MSMQ/", 21, "a queue name is missing"),
        ("DIRECT=HTTP://h/MSMQ/a/b", 22, "a queue name in a URL cannot contain '/'"),
        ("DIRECT=HTTP://h/MSMQ/private$/a/b", 31, "a queue name in a URL cannot contain '/'"),
        ("DIRECT=HTTP://h/MSMQ/q;a/b", 24, "a queue name in a URL cannot contain '/'"),
        ("DIRECT=HTTP:///MSMQ/q", 14, "a computer name is missing"),
        ("DIRECT=HTTP://me@h/MSMQ/q", 16, "a host in a URL cannot contain '@'"),
        ("DIRECT=HTTP://h:x/MSMQ/q", 16, "'x' is no port: only digits"),
        ("DIRECT=HTTP://h:65536/MSMQ/q", 16, "the port must be from 0 to 65535"),
        ("DIRECT=HTTP://h:123456/MSMQ/q", 16, "the port must be from 0 to 65535"),
        ("DIRECT=HTTP://[::1/MSMQ/q", 18, "']' is missing after the IPv6 address"),
        ("DIRECT=HTTP://[::g]/MSMQ/q", 15, "::g is no IPv6 address"),
        ("DIRECT=HTTP://[1.2.3.4]/MSMQ/q", 15, "1.2.3.4 is no IPv6 address: leave out the brac"),
        ("DIRECT=HTTP://[::1]80/MSMQ/q", 19, "after ']' comes ':' and a port"),
        ("PUBLIC=", 7, "a GUID is needed here, 8-4-4-4-12 hexadecimal digits without braces"),
        (f"PUBLIC={{{G}}}", 7, "a GUID is needed here"),
        ("PUBLIC=0f7c2894-f918-4e9x-a4bb-93e2b3cfd18f", 24, "a GUID is needed here"),
        ("PUBLIC=0f7c2894f918", 15, "a GUID is needed here"),
        (f"PUBLIC={G[:-1]}", 42, "a GUID is needed here"),
        (f"PUBLIC={G}0", 43, "after a public format name only ;JOURNAL can follow"),
        (f"PUBLIC={G};DEADLETTER", 43, "after a public format name only ;JOURNAL can follow"),
        (f"PRIVATE={G}", 44, r"after the GUID comes '\' and the number of the queue"),
        (f"PRIVATE={G}/1", 44, r"after the GUID comes '\' and the number of the queue"),
        (f"PRIVATE={G}\\", 45, "one to eight hexadecimal digits"),
        (f"PRIVATE={G}\\12x", 47, "one to eight hexadecimal digits"),
        (f"PRIVATE={G}\\123456789", 53, "one to eight hexadecimal digits"),
        (f"PRIVATE={G}\\1;DEADXACT", 46, "after a private format name only ;JOURNAL can follow"),
        (f"MACHINE={G}", 44, "after a machine GUID comes ;JOURNAL, ;DEADLETTER or ;DEADXACT"),
        (f"MACHINE={G};XACTONLY", 44, "after a machine GUID comes ;JOURNAL"),
        (f"CONNECTOR={G};JOURNAL", 46, "after a connector format name only ;XACTONLY can follow"),
        (f"DL={G};JOURNAL", 39, "after the GUID only '@' and a domain name can follow"),
        (f"DL={G}@", 40, "a domain name is missing"),
        (f"DL={G}@a b", 41, "a domain name cannot contain ' '"),
        (f"DL={G}@{'d' * 256}", 295, "a domain name has at most 255 characters"),
        ("MULTICAST=234.1.1.1", 19, "after a multicast address comes ':' and a port"),
        ("MULTICAST=10.0.0.1:80", 10, "from 224.0.0.0 to 239.255.255.255"),
        ("MULTICAST=240.0.0.1:80", 10, "from 224.0.0.0 to 239.255.255.255"),
        ("MULTICAST=host:80", 10, "from 224.0.0.0 to 239.255.255.255"),
        ("MULTICAST=[ff02::1]:80", 10, "from 224.0.0.0 to 239.255.255.255"),
        ("MULTICAST=234.1.1.1:", 20, "a port is missing"),
        ("MULTICAST=234.1.1.1:65536", 20, "the port must be from 0 to 65535"),
        ("MULTICAST=234.1.1.1:080", 20, "a multicast port has no leading zeros"),
        ("MULTICAST=234.1.1.1:8001;JOURNAL", 20, "only digits can stand here"),
        (f"DL={G},", 40, "begins with one of"),
        (f"DL={G},PUBLIC=x", 47, "a GUID is needed here"),
        (f"DL={G},DIRECT=OS:h\\a+b", 53, "a queue name cannot contain '+'"),
        (f"DL={G},PUBLIC={G};JOURNAL", 40, "a journal or dead-letter queue cannot be among"),
        (f"private={G}\\0001,public={G};journal", 50, "a journal or dead-letter queue cannot be"),
        (f"DL={G},MACHINE={G};DEADXACT", 40, "a journal or dead-letter queue cannot be among"),
        (f"DL={G},DIRECT=OS:h\\SYSTEM$;JOURNAL", 40, "a journal or dead-letter queue cannot be"),
        (f"DL={G}@{'d' * 2000}", 1024, "a format name has at most 1024 characters"),
        (1024 * ",", 0, "a list of format names has at most 1024 elements"),
    ],
)
def test_an_illegal_format_name_is_explained(text: str, position: int, problem: str) -> None:
    with pytest.raises(IllegalFormatName) as caught:
        parse_format_name(text)
    assert (caught.value.text, caught.value.position) == (text, position)
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "a queue name is missing"),
        ("\\", 0, "a computer name is missing"),
        ("\\orders", 0, "a computer name is missing"),
        ("host\\", 5, "a queue name is missing"),
        ("host\\private$", 13, "a queue name is missing after private$"),
        ("host\\private$\\", 14, "a queue name is missing"),
        ("private$", 8, "a queue name is missing after private$"),
        ("private$\\", 9, "a queue name is missing"),
        ("private$\\host\\orders", 13, "a queue name cannot contain '\\'"),
        ("private$/orders", 8, r"separated by '\'"),
        ("host/orders", 4, r"separated by '\'"),
        ("host\\a\\b", 6, "a queue name cannot contain '\\'"),
        ("my host\\orders", 2, "a computer name cannot contain ' '"),
        ("host\\or\x00ders", 7, "a queue name cannot contain '\\x00'"),
        ("host\\or\u3000ders", 7, "a queue name cannot contain '\\u3000'"),
        ("host\\orders;", 12, "a subqueue name is missing"),
        ("host\\orders;a;b", 13, "after a subqueue name only ;JOURNAL can follow"),
        ("host\\system$;orders", 13, "after SYSTEM$ comes ;JOURNAL"),
        ("host\\private$\\q;a+b", 17, "a subqueue name cannot contain '+'"),
        ("DIRECT=OS:host\\orders", 6, "this looks like a format name"),
        ("host\\" + "😀" * 63, 67, "a queue name has at most 124 characters"),
    ],
)
def test_an_illegal_path_name_is_explained(text: str, position: int, problem: str) -> None:
    with pytest.raises(IllegalPathName) as caught:
        PathName.parse(text)
    assert (caught.value.text, caught.value.position) == (text, position)
    assert problem in caught.value.problem


@pytest.mark.parametrize(("text", "position"), [("OS:h\\a+b", 6), ("DIRECT=OS:h\\a+b", 13)])
def test_positions_in_wire_text_count_its_own_characters(text: str, position: int) -> None:
    with pytest.raises(IllegalFormatName) as caught:
        DirectFormatName.from_wire_text(text)
    assert (caught.value.text, caught.value.position) == (text, position)


def test_a_comma_in_wire_text_makes_no_list() -> None:
    with pytest.raises(IllegalFormatName, match="cannot contain ','"):
        DirectFormatName.from_wire_text("OS:h\\q,DIRECT=OS:h\\q")


def test_the_message_says_what_is_wrong_and_where_people_start_counting_at_one() -> None:
    with pytest.raises(IllegalName) as caught:
        PathName.parse("host\\a+b")
    assert str(caught.value) == ("a queue name cannot contain '+' (at character 7 of 'host\\a+b')")


def test_the_message_does_not_repeat_a_long_text_in_full() -> None:
    with pytest.raises(IllegalName) as caught:
        PathName.parse("host\\" + "q" * 10_000)
    assert len(str(caught.value)) < 200
    assert len(caught.value.text) == 10_005


def test_the_kinds_of_error_can_be_told_apart() -> None:
    kinds = (IllegalPathName, IllegalFormatName, UnsupportedName)
    for kind in kinds:
        assert issubclass(kind, IllegalName)
        assert issubclass(kind, ValueError)
        assert not any(issubclass(kind, other) for other in kinds if other is not kind)


# Values that no text could give.

GUID = Guid.parse(G)
QUEUE = DirectFormatName(DirectProtocol.OS, "h", LocalQueueName("q"))


@pytest.mark.parametrize("number", [-1, 0x1_0000_0000])
def test_the_number_of_a_private_queue_has_32_bits(number: int) -> None:
    with pytest.raises(IllegalFormatName, match="32 bits"):
        PrivateFormatName(GUID, number)


@pytest.mark.parametrize(("address", "port"), [("ff02::1", 1), ("1.2.3.4", 1), ("234.1.1.1", -1)])
def test_a_multicast_name_has_an_ipv4_multicast_address_and_a_port(address: str, port: int) -> None:
    with pytest.raises(IllegalFormatName):
        MulticastFormatName(address, port)


@pytest.mark.parametrize("count", [0, 1, 1025])
def test_a_list_of_names_has_at_least_two_and_at_most_1024(count: int) -> None:
    with pytest.raises(IllegalFormatName, match="a list of format names has"):
        MultipleFormatName((QUEUE,) * count)
    text = ",".join(["DIRECT=OS:h\\q"] * 1024)
    assert parse_format_name(text) == MultipleFormatName((QUEUE,) * 1024)


@pytest.mark.parametrize(
    "name",
    [PublicFormatName(GUID, journal=True), MachineFormatName(GUID, SystemQueue.JOURNAL)],
)
def test_a_list_of_names_is_not_made_with_a_read_only_queue(
    name: PublicFormatName | MachineFormatName,
) -> None:
    with pytest.raises(IllegalFormatName, match="cannot be among several") as caught:
        MultipleFormatName((QUEUE, name))
    assert caught.value.position == len(str(QUEUE)) + 1


@pytest.mark.parametrize("separator", ["\\", "\\private$\\"])
def test_behind_what_is_too_long_nothing_is_looked_at(separator: str) -> None:
    """A text may have millions of characters; a flaw before its excess is still the first."""
    with pytest.raises(IllegalName, match="a queue name has at most 124 characters"):
        PathName.parse(f"host{separator}{'q' * 125}+")
    with pytest.raises(IllegalName, match="a queue name cannot contain"):
        PathName.parse(f"host{separator}{'q' * 123}+{'q' * 125}")
