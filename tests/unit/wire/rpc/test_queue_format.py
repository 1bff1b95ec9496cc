"""Names of queues in calls: every kind of name, and every way in which one can lie."""

from __future__ import annotations

import pytest
from hypothesis import given

from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.names import IllegalFormatName, UnsupportedName, parse_format_name
from openmsmq.wire.rpc.queue_format import MulticastId, ObjectId, QueueFormat
from tests.strategies.rpc_values import QUEUE_FORMAT

ANY = "11111111-2222-3333-4444-555555555555"
GUID = Guid.parse(ANY)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"PUBLIC={ANY}", QueueFormat(1, 0, 0, GUID)),
        (f"PUBLIC={ANY};JOURNAL", QueueFormat(1, 0x81, 0, GUID)),
        (f"PRIVATE={ANY}\\1f", QueueFormat(2, 0, 0, ObjectId(GUID, 0x1F))),
        (f"PRIVATE={ANY}\\1f;JOURNAL", QueueFormat(2, 0x81, 0, ObjectId(GUID, 0x1F))),
        (f"MACHINE={ANY};JOURNAL", QueueFormat(4, 0x81, 0, GUID)),
        (f"MACHINE={ANY};DEADLETTER", QueueFormat(4, 0x82, 0, GUID)),
        (f"MACHINE={ANY};DEADXACT", QueueFormat(4, 0x83, 0, GUID)),
        (r"DIRECT=OS:a\q", QueueFormat(3, 0, 0, r"OS:a\q")),
        (r"DIRECT=TCP:10.0.0.1\PRIVATE$\q", QueueFormat(3, 0, 0, r"TCP:10.0.0.1\PRIVATE$\q")),
        (r"DIRECT=OS:a\q;JOURNAL", QueueFormat(3, 0x81, 0, r"OS:a\q;JOURNAL")),
        (r"DIRECT=OS:a\SYSTEM$;DEADXACT", QueueFormat(3, 0x83, 0, r"OS:a\SYSTEM$;DEADXACT")),
        (r"DIRECT=OS:a\q;sub", QueueFormat(8, 5, 0, r"OS:a\q;sub")),
    ],
)
def test_a_name_becomes_its_structure_and_back(text: str, expected: QueueFormat) -> None:
    assert QueueFormat.of(parse_format_name(text)) == expected
    assert str(expected.name()) == text


def test_a_subqueue_may_be_named_like_a_queue() -> None:
    assert str(QueueFormat(3, 0, 0, r"OS:a\q;sub").name()) == r"DIRECT=OS:a\q;sub"


@pytest.mark.parametrize(
    "wrong",
    [
        QueueFormat(0, 0, 0, None),
        QueueFormat(1, 1, 0, GUID),
        QueueFormat(1, 0x80, 0, GUID),
        QueueFormat(1, 0x82, 0, GUID),
        QueueFormat(2, 0x83, 0, ObjectId(GUID, 1)),
        QueueFormat(4, 0, 0, GUID),
        QueueFormat(4, 1, 0, GUID),
        QueueFormat(4, 0x84, 0, GUID),
        QueueFormat(4, 0x8F, 0, GUID),
        QueueFormat(3, 0, 0, None),
        QueueFormat(3, 0x81, 0, r"OS:a\q"),
        QueueFormat(3, 0, 0, r"OS:a\q;JOURNAL"),
        QueueFormat(3, 0x82, 0, r"OS:a\q;JOURNAL"),
        QueueFormat(3, 0, 0, "OS:a"),
        QueueFormat(8, 5, 0, r"OS:a\q"),
        QueueFormat(8, 5, 0, None),
    ],
)
def test_a_name_that_contradicts_itself_is_illegal(wrong: QueueFormat) -> None:
    with pytest.raises(IllegalFormatName):
        wrong.name()


@pytest.mark.parametrize(
    "wrong",
    [
        QueueFormat(3, 0, 0, "HTTP://a/msmq/q"),
        QueueFormat(5, 0, 0, GUID),
        QueueFormat(7, 0, 0, MulticastId(1, 2)),
    ],
)
def test_a_name_by_which_nobody_reads_is_not_supported(wrong: QueueFormat) -> None:
    with pytest.raises(UnsupportedName):
        wrong.name()


@pytest.mark.parametrize("text", [f"DL={ANY}", "MULTICAST=234.1.1.1:8001", f"CONNECTOR={ANY}"])
def test_a_name_by_which_nobody_reads_has_no_structure(text: str) -> None:
    with pytest.raises(UnsupportedName):
        QueueFormat.of(parse_format_name(text))


@given(QUEUE_FORMAT)
def test_any_structure_is_a_name_or_an_error(value: QueueFormat) -> None:
    try:
        name = value.name()
    except MsmqError:
        return
    assert QueueFormat.of(name).name() == name
