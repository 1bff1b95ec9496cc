"""Messages are compared between sessions, and what is remembered has a limit."""

from __future__ import annotations

from openmsmq.analysis.comparison import Comparison
from openmsmq.analysis.events import Anomaly, PacketItem, Settled
from openmsmq.analysis.kinds import AnomalyKind, Fate
from openmsmq.capture.tcp_streams import Connection
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from tests.strategies.captures import endpoint

CLIENT, SERVER, OTHER = (endpoint(f"10.0.0.{host}", 1801) for host in (1, 2, 3))
HERE = Guid(b"0123456789abcdef")


class Told:
    """A comparison, and the kinds of what it says."""

    def __init__(self, **limits: int) -> None:
        self._comparison = Comparison(**limits)
        self._count = 0

    def sees(self, packet: UserMessage, way=(CLIENT, SERVER)) -> list[str]:
        self._count += 1
        connection = Connection(1, *way, True)
        item = PacketItem(1, 1, *way, b"", connection, 0, self._count, packet)
        return self._kinds(self._comparison.with_findings([item]))

    def settles(self, number: int, fate: Fate) -> None:
        assert self._kinds(self._comparison.with_findings([Settled(number, fate, 0)])) == []

    def ends(self) -> list[str]:
        return self._kinds(self._comparison.finish())

    @staticmethod
    def _kinds(events) -> list[str]:
        return [event.kind for event in events if isinstance(event, Anomaly)]


def message(number: int, place: tuple[int, int] | None = None) -> UserMessage:
    header = None if place is None else TransactionHeader(SequenceId(7, 1), *place)
    return UserMessage(
        UserHeader(HERE, message_number=number), MessageProperties.of(b""), transaction=header
    )


def up_to(number: int, message_number: int) -> UserMessage:
    return order_packet(
        OrderAck.up_to(SequenceId(7, 1), number),
        source=HERE,
        to="10.0.0.1",
        message_number=message_number,
        sent_time_s=1,
        time_to_reach_queue_s=60,
    )


def test_the_same_message_between_the_same_addresses_was_sent_again():
    told = Told()
    assert told.sees(message(1)) == []
    assert told.sees(message(1), (SERVER, OTHER)) == []
    assert told.sees(message(2)) == []
    assert told.sees(message(1)) == [AnomalyKind.RESENT_MESSAGE]


def test_a_gap_and_an_acknowledgment_that_goes_back_are_told_once():
    told = Told()
    assert told.sees(message(1, (1, 0))) == []
    assert told.sees(message(4, (4, 3))) == [AnomalyKind.SEQUENCE_GAP]
    assert told.sees(message(4, (4, 3))) == [AnomalyKind.RESENT_MESSAGE]
    assert told.sees(up_to(4, 10), (SERVER, CLIENT)) == []
    assert told.sees(up_to(1, 11), (SERVER, CLIENT)) == [AnomalyKind.ORDER_ACK_BACK]


def test_a_message_is_lost_if_no_copy_was_acknowledged_and_the_last_session_ended():
    told = Told()
    for number in (1, 2, 3, 2):
        told.sees(message(number))
    told.settles(1, Fate.ACKNOWLEDGED)
    told.settles(2, Fate.UNACKNOWLEDGED)
    told.settles(3, Fate.UNACKNOWLEDGED)
    told.settles(4, Fate.ACKNOWLEDGED)
    assert told.ends() == [AnomalyKind.UNACKNOWLEDGED_MESSAGE]


def test_no_more_than_the_limit_is_remembered():
    told = Told(messages_max=2, sequences_max=1)
    told.sees(message(1, (1, 0)))
    told.settles(1, Fate.UNACKNOWLEDGED)
    told.sees(message(2), (CLIENT, OTHER))
    assert told.sees(message(3)) == [AnomalyKind.UNACKNOWLEDGED_MESSAGE]
    # It is forgotten, and so is its sequence when another comes.
    assert told.sees(message(1, (1, 0))) == []
    told.sees(message(9, (1, 0)), (CLIENT, OTHER))
    assert told.sees(message(5, (5, 4))) == []
