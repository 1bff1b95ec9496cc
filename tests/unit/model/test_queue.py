from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.errors import IllegalPropertyValue
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.model.queue import (
    AccessMode,
    ConnectionStatus,
    OutgoingQueueState,
    QueueKind,
    QueuePrivacy,
    QueueProperties,
    QueueScope,
    SeekAction,
    ShareMode,
)


def queue(**changes: object) -> QueueProperties:
    return QueueProperties(identifier=NIL_GUID, path_name=r"ALPHA\private$\orders", **changes)


def test_a_queue_that_says_nothing_has_the_defaults_of_the_specification():
    properties = queue()
    assert properties.label == ""
    assert properties.service_type == NIL_GUID
    assert not properties.journaling
    assert not properties.authentication_required
    assert not properties.transactional
    assert properties.quota_kb == properties.journal_quota_kb == UNLIMITED_KB
    assert properties.privacy is QueuePrivacy.OPTIONAL
    assert properties.multicast_address is None
    assert properties.base_priority == 0
    assert properties.scope is QueueScope.ENTERPRISE


@given(st.one_of(st.text(max_size=9), st.text("😀a", min_size=60, max_size=130)))
def test_the_label_of_a_queue_has_at_most_124_utf16_units(label):
    if len(label.encode("utf-16-le")) <= 2 * 124:
        assert queue(label=label).label == label
    else:
        with pytest.raises(IllegalPropertyValue, match="124"):
            queue(label=label)


@pytest.mark.parametrize("label", ["x" * 124, "😀" * 62])
def test_a_label_of_exactly_124_units_is_accepted_and_one_more_is_not(label):
    assert queue(label=label).label == label
    with pytest.raises(IllegalPropertyValue, match="125"):
        queue(label=label + "x")


@given(st.one_of(st.integers(-32_770, -32_766), st.integers(32_765, 32_770), st.integers()))
def test_a_base_priority_has_16_bits(priority):
    if -(2**15) <= priority < 2**15:
        assert queue(kind=QueueKind.PUBLIC, base_priority=priority).base_priority == priority
    else:
        with pytest.raises(IllegalPropertyValue, match="16 bits"):
            queue(kind=QueueKind.PUBLIC, base_priority=priority)


@pytest.mark.parametrize("kind", [kind for kind in QueueKind if kind is not QueueKind.PUBLIC])
def test_only_public_queues_have_a_base_priority(kind):
    with pytest.raises(IllegalPropertyValue, match="public"):
        queue(kind=kind, base_priority=1)


@pytest.mark.parametrize("name", ["quota_kb", "journal_quota_kb"])
@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_quota_has_32_bits(name, value):
    with pytest.raises(IllegalPropertyValue, match=name):
        queue(**{name: value})


@pytest.mark.spec("MQDMPR-3.1.1.2-04", "MQMQ-2.3.1.12-01", "MQMQ-2.3.1.14-01")
def test_privacy_and_scope_have_the_published_values():
    assert {member.name: member.value for member in QueuePrivacy} == {
        "NONE": 0,
        "OPTIONAL": 1,
        "BODY": 2,
    }
    assert {member.name: member.value for member in QueueScope} == {"SITE": 0, "ENTERPRISE": 1}


@pytest.mark.spec("MQDMPR-3.1.1.2-08")
def test_a_queue_has_one_of_four_kinds_with_the_word_of_management():
    assert {kind.name: kind.value for kind in QueueKind} == {
        "PUBLIC": "PUBLIC",
        "PRIVATE": "PRIVATE",
        "SYSTEM": "MACHINE",
        "CONNECTOR": "CONNECTOR",
    }


@pytest.mark.spec("MQDMPR-3.1.1.3-01", "MQMQ-2.3.12.11-01")
def test_every_state_of_an_outgoing_queue_has_a_word_of_management():
    words = {state: state.management_text for state in OutgoingQueueState}
    assert words == {
        OutgoingQueueState.CONNECTED: "CONNECTED",
        OutgoingQueueState.DISCONNECTED: "DISCONNECTED",
        OutgoingQueueState.DISCONNECTING: "DISCONNECTING",
        OutgoingQueueState.INACTIVE: "INACTIVE",
        OutgoingQueueState.LOCKED: "INACTIVE",
        OutgoingQueueState.NEED_VALIDATION: "NEED VALIDATION",
        OutgoingQueueState.WAITING: "WAITING",
        OutgoingQueueState.ON_HOLD: "ONHOLD",
    }


@pytest.mark.spec("MQDMPR-3.1.1.3-02", "MQMQ-2.3.12.25-01")
def test_the_connection_history_has_the_published_codes():
    values = [0, 1, 2, *range(0x80000000, 0x8000000E)]
    assert [status.value for status in ConnectionStatus] == values
    assert ConnectionStatus.DNS_FAILURE == 0x80000008
    assert ConnectionStatus.CONNECTION_REFUSED == 0x8000000B
    assert {status for status in ConnectionStatus if not status.is_failure} == {
        ConnectionStatus.IN_PROCESS,
        ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
        ConnectionStatus.ESTABLISHED,
    }


@pytest.mark.spec("MQDMPR-3.1.1.17-03", "MQDMPR-3.1.1.17-04")
def test_the_ways_to_open_a_queue_have_the_published_values():
    assert {name: int(mode) for name, mode in AccessMode.__members__.items()} == {
        "RECEIVE": 0x01,
        "SEND": 0x02,
        "MOVE": 0x04,
        "PEEK": 0x20,
        "RECEIVE_ADMIN": 0x81,
        "PEEK_ADMIN": 0xA0,
    }
    assert {mode.name: mode.value for mode in ShareMode} == {"DENY_NONE": 0, "DENY_RECEIVE": 1}


@pytest.mark.spec("MQDMPR-3.1.1.17-02")
def test_a_seek_goes_to_one_of_five_messages():
    assert {action.name for action in SeekAction} == {
        "FIRST",
        "PREVIOUS",
        "CURRENT",
        "NEXT",
        "LAST",
    }
