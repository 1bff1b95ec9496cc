"""Posts: taken, durable, and only then answered; whatever cannot be taken is answered at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.manager.config import HttpConfig
from openmsmq.manager.notices import Notice
from openmsmq.manager.outputs import Persist
from openmsmq.model.access import QueueAccess
from openmsmq.model.identity import NIL_GUID, Guid, MessageId
from openmsmq.model.limits import PEER_SILENCE_S
from openmsmq.model.message import MessageClass
from openmsmq.protocol.posts import OutgoingPost, PostAnswer
from openmsmq.security.access.sids import EVERYONE, unix_user
from openmsmq.wire.srmp.envelope import (
    NO_ID,
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Msmq,
    Services,
    Stream,
)
from tests.conformance.marks import shows
from tests.unit.manager.access_cases import only
from tests.unit.manager.office import LEDGER, ORDERS, START_S
from tests.unit.manager.posts.mailroom import (
    LEDGER_URL,
    ORDERS_URL,
    PEER,
    RECEIPTS,
    STRANGER,
    Mailroom,
    envelope_of,
    message,
    of_stream,
)


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


def test_a_message_is_in_its_queue(room: Mailroom) -> None:
    assert room.post(message(), b"hello") == 200
    assert room.bodies() == [b"hello"]


@pytest.mark.spec("MQSRM-3.1.5.1.6.2-01")
def test_it_is_answered_when_the_disk_has_it_and_not_before(room: Mailroom) -> None:
    node = room.driver.node
    room.hand_in(message())
    outputs = node.take()
    persists = [output for output in outputs if isinstance(output, Persist)]
    assert len(persists) == 1
    assert not any(isinstance(output, PostAnswer) for output in outputs)
    assert node.take() == []
    assert node.commit(persists[0], room.driver.now)
    assert PostAnswer(1, 200) in node.take()


def test_what_the_disk_refuses_its_sender_keeps(room: Mailroom) -> None:
    assert room.post(message(), fail=1) == 500
    assert room.bodies() == []
    assert room.post(message()) == 200
    assert room.bodies() == [b"body"]


@pytest.mark.spec("MQSRM-3.1.5.1.11-02")
def test_a_message_that_comes_twice_is_there_once(room: Mailroom) -> None:
    assert [room.post(message(7)), room.post(message(7)), room.post(message(8))] == [200] * 3
    assert len(room.bodies()) == 2


PATIENT = Msmq(0, 3, 0, PEER, START_S + 30 * 86_400)


def test_a_sender_that_pauses_for_hours_is_still_known(room: Mailroom) -> None:
    pauses_s = (*[30] * 3, *[300] * 3, *[1_800] * 3, 21_600)
    assert room.post(message(7, msmq=PATIENT)) == 200
    # He hears no answer, reaches nobody for a while, and tries again after his longest pause.
    room.passes(1_000 * sum(pauses_s) - 1)
    assert room.post(message(7, msmq=PATIENT)) == 200
    assert len(room.bodies()) == 1


def test_even_he_is_forgotten_in_the_end(room: Mailroom) -> None:
    assert room.post(message(7, msmq=PATIENT)) == 200
    room.passes(3 * 24 * 3_600_000)
    assert room.post(message(7, msmq=PATIENT)) == 200
    assert len(room.bodies()) == 2


def test_nobody_makes_the_message_of_another_look_as_if_it_had_come(room: Mailroom) -> None:
    assert room.post(message(7), b"forged", address="10.0.0.66") == 200
    assert room.post(message(7), b"genuine") == 200
    assert room.bodies() == [b"forged", b"genuine"]


@pytest.mark.spec("MQSRM-3.1.5.1.11-01")
def test_messages_without_an_identity_are_all_different(room: Mailroom) -> None:
    foreign = Envelope(to=ORDERS_URL, expires_s=START_S + 60, sent_s=START_S)
    assert [room.post(foreign), room.post(foreign)] == [200, 200]
    bare = message(1, source=NIL_GUID, id=NO_ID)
    assert [room.post(bare), room.post(bare)] == [200, 200]
    assert len(room.bodies()) == 4


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"target": "/msmq/private$/other"}, id="another URL"),
        pytest.param({"queue": r"private$\missing"}, id="no such queue"),
        pytest.param({"queue": "nonsense;;"}, id="no queue at all"),
        pytest.param({"queue": LEDGER}, id="a transactional queue"),
        pytest.param({"queue": r"system$;deadletter"}, id="a system queue"),
        pytest.param({"headers": {"content-type": "text/xml"}}, id="no parts"),
        pytest.param({"headers": {}}, id="no type"),
    ],
)
@pytest.mark.spec("MQSRM-3.1.5.1.2-02")
def test_what_cannot_be_taken_is_answered_so(room: Mailroom, parts: dict[str, object]) -> None:
    assert room.post(message(), **parts) == 400
    assert room.bodies() == []


def test_a_stream_goes_into_transactional_queues_only(room: Mailroom) -> None:
    stream = Stream(PEER, 5, 1, receipts_to=RECEIPTS)
    assert room.post(message(stream=stream)) == 400
    assert room.post(message(to=LEDGER_URL)) == 400
    assert room.bodies(ORDERS) + room.bodies(LEDGER) == []


def test_a_queue_that_demands_a_signature_takes_nothing(room: Mailroom) -> None:
    changed = api.ChangeQueue(ORDERS, authentication_required=True)
    room.ok(changed)
    assert room.post(message()) == 400


def test_without_configuration_nothing_is_taken() -> None:
    assert Mailroom(http=HttpConfig()).post(message()) == 500


def test_what_came_too_late_is_dropped_and_not_sent_again(room: Mailroom) -> None:
    late = message()
    assert late.msmq is not None
    late = structs.replace(late, msmq=structs.replace(late.msmq, reach_by_s=START_S - 400))
    assert room.post(structs.replace(late, sent_s=START_S - 1000)) == 200
    assert room.bodies() == []


@shows("MQSRM-3.1.5.1.12", 12)
def test_a_full_queue_drops_a_plain_message_and_keeps_a_stream_waiting(room: Mailroom) -> None:
    for name in (ORDERS, LEDGER):
        room.ok(api.ChangeQueue(name, quota_kb=1))
    assert room.post(message(), b"x" * 2000) == 200
    assert room.post(of_stream(1, start=True), b"x" * 2000) == 500
    assert room.bodies() + room.bodies(LEDGER) == []
    # Its number was not raised with it.
    assert room.post(of_stream(1, start=True), b"small") == 200
    assert room.bodies(LEDGER) == [b"small"]


@shows("MQSRM-3.1.5.1.12", 13)
def test_a_full_queue_manager_lets_everybody_wait() -> None:
    room = Mailroom(quota_kb=2)
    assert room.post(message(), b"x" * 3000) == 500
    assert room.bodies() == []


# Streams.


@pytest.mark.spec("MQSRM-3.1.5.1.6.3-01")
def test_a_stream_is_taken_in_its_order_and_once(room: Mailroom) -> None:
    for envelope, body in (
        (of_stream(1, start=True), b"1"),
        (of_stream(3), b"too early"),
        (of_stream(2), b"2"),
        (of_stream(2), b"again"),
        (of_stream(3), b"3"),
        (of_stream(1, start=True), b"from the start"),
    ):
        assert room.post(envelope, body) == 200
    assert room.bodies(LEDGER) == [b"1", b"2", b"3"]


def test_a_hole_that_its_sender_knows_is_passed_over(room: Mailroom) -> None:
    assert room.post(of_stream(1, start=True)) == 200
    hole = structs.replace(of_stream(4), stream=Stream(PEER, 5, 4, 1))
    assert room.post(hole, b"behind") == 200
    assert room.bodies(LEDGER) == [b"body", b"behind"]


def test_a_stream_that_nobody_began_waits(room: Mailroom) -> None:
    lost = structs.replace(of_stream(4), stream=Stream(PEER, 5, 4, 0))
    assert room.post(lost) == 500
    assert room.post(structs.replace(lost, stream=Stream(PEER, 5, 4, 0, RECEIPTS))) == 200


def test_a_stream_whose_receipts_lead_nowhere_is_refused(room: Mailroom) -> None:
    for url in ("ftp://a/b", "http://a/b", "TCP:10.0.0.1\\q"):
        stream = Stream(PEER, 5, 1, receipts_to=url)
        assert room.post(message(1, to=LEDGER_URL, stream=stream)) == 400


@pytest.mark.spec("MQSRM-3.1.2.3-02")
def test_the_receipt_comes_after_half_a_second_of_quiet(room: Mailroom) -> None:
    room.post(of_stream(1, start=True))
    room.post(of_stream(2))
    assert room.passes(499) == []
    (receipt,) = room.passes(1)
    assert receipt.url == RECEIPTS
    found = envelope_of(receipt)
    assert found.action == "MSMQ:QM Ordering Ack"
    assert found.stream_receipt is not None
    assert found.stream_receipt.source == PEER
    assert (found.stream_receipt.sequence, found.stream_receipt.last) == (5, 2)


def test_what_comes_again_is_acknowledged_again(room: Mailroom) -> None:
    room.post(of_stream(1, start=True))
    (first,) = room.passes(600)
    room.answered(first)
    assert room.passes(60_000) == []
    assert room.post(of_stream(1, start=True)) == 200
    (again,) = room.passes(600)
    assert envelope_of(again).stream_receipt == envelope_of(first).stream_receipt


def test_a_stranger_cannot_lead_receipts_elsewhere(room: Mailroom) -> None:
    room.post(of_stream(1, start=True))
    other = Stream(PEER, 5, 1, receipts_to="http://thief/msmq/private$/order_queue$")
    assert room.post(message(1, to=LEDGER_URL, stream=other)) == 200
    assert [post.url for post in room.passes(600)] == [RECEIPTS]


def test_who_writes_a_sender_hears_what_is_wrong_and_the_operator_too(room: Mailroom) -> None:
    assert room.post(message(), headers={"content-type": "image/png"}) == 400
    (answer,) = [each for each in room.driver.seen if isinstance(each, PostAnswer)]
    assert b"content of type 'image/png'" in answer.body
    assert answer.content_type.startswith("text/plain")
    (notice,) = [each for each in room.driver.seen if isinstance(each, Notice)]
    assert "content of type 'image/png'" in str(dict(notice.facts)["detail"])
    # What of it is ours to know stays here.
    room.ok(api.DeleteQueue(ORDERS))
    assert room.post(message()) == 400
    assert [each.body for each in room.driver.seen if isinstance(each, PostAnswer)][1:] == [b""]


CLOSED = r"private$\closed"
"""A queue without a URL, into which everybody may write."""
CLOSED_URL = "http://alpha/msmq/private$/closed"


@pytest.fixture
def listed() -> Mailroom:
    """A queue manager of which only the usual two queues have URLs."""
    made = Mailroom(http=HttpConfig(enabled=True, queues=(ORDERS, LEDGER)))
    made.ok(api.CreateQueue(CLOSED))
    return made


def test_no_receipt_leads_a_stranger_into_a_queue_without_a_url(listed: Mailroom) -> None:
    # Label and body of what is refused are his: it would be a message of his choice.
    wanted = Services(delivery=True, commitment=True, negative=True, send_to=CLOSED_URL)
    assert listed.post(message(2, services=wanted)) == 200
    assert listed.post(message(3, services=wanted, expires_s=START_S + 1)) == 200
    listed.passes(5_000)
    assert listed.bodies(CLOSED) == []
    # Where others may post, they may have receipts sent.
    told = Services(delivery=True, send_to=ORDERS_URL)
    assert listed.post(message(4, services=told), b"told of") == 200
    assert MessageClass.ACK_REACH_QUEUE in listed.classes(ORDERS)


def test_nor_does_the_receipt_of_a_stream(listed: Mailroom) -> None:
    assert listed.post(message(1, to=LEDGER_URL, stream=Stream(PEER, 5, 1, 0, CLOSED_URL))) == 200
    listed.passes(1_000)
    assert listed.bodies(CLOSED) == []


def test_a_stream_belongs_to_the_certificate_that_brought_it(room: Mailroom) -> None:
    genuine, other = certificate("genuine"), certificate("other")
    assert room.post(of_stream(1, start=True), b"1", certificate=genuine) == 200
    for forged in (b"", other):
        assert room.post(of_stream(2), b"forged", certificate=forged) == 500
    # It may have a new key meanwhile: its subject is who it is.
    assert room.post(of_stream(2), b"2", certificate=certificate("genuine")) == 200
    assert room.bodies(LEDGER) == [b"1", b"2"]


THIEF = "http://thief/msmq/private$/order_queue$"
HIGHEST = (1 << 64) - 1


def beginning(sequence: int, receipts_to: str = RECEIPTS) -> Envelope:
    """The first message of a younger stream of the same sender."""
    stream = Stream(PEER, sequence, 1, receipts_to=receipts_to)
    return message(1, to=LEDGER_URL, stream=stream)


def test_nobody_elsewhere_ends_a_stream_by_a_younger_one(room: Mailroom) -> None:
    assert room.post(of_stream(1, start=True), b"1") == 200
    assert room.post(beginning(HIGHEST, THIEF), b"forged", address="10.0.0.66") == 500
    assert room.post(of_stream(2), b"2") == 200
    assert room.bodies(LEDGER) == [b"1", b"2"]
    assert {post.url for post in room.passes(600)} == {RECEIPTS}
    # After a start it is known as well.
    room.driver.node.crash(room.driver.now, committed=False)
    room.app = room.driver.connect()
    assert room.post(beginning(HIGHEST, THIEF), b"forged", address="10.0.0.66") == 500
    assert room.post(of_stream(3), b"3") == 200


@pytest.mark.parametrize(
    ("address", "receipts_to"), [("10.0.0.66", RECEIPTS), (STRANGER, "http://new/msmq/q?word=2")]
)
def test_its_sender_begins_another_from_his_address_or_with_his_word(
    room: Mailroom, address: str, receipts_to: str
) -> None:
    room.post(of_stream(1, start=True), b"1")
    # Messages of the stream itself may come any way: they tell nothing that he must know.
    assert room.post(of_stream(2), b"2", address="10.0.0.7") == 200
    assert room.post(of_stream(3), b"3") == 200
    assert room.post(beginning(6, receipts_to), b"younger", address=address) == 200
    assert room.bodies(LEDGER) == [b"1", b"2", b"3", b"younger"]


def test_a_certificate_needs_neither(room: Mailroom) -> None:
    room.post(of_stream(1, start=True), b"1")
    shown = certificate("genuine")
    moved = room.post(beginning(6, THIEF), b"2", address="10.0.0.7", certificate=shown)
    assert (moved, room.bodies(LEDGER)) == (200, [b"1", b"2"])


def test_who_has_moved_waits_until_he_was_silent_for_an_hour(room: Mailroom) -> None:
    room.post(of_stream(1, start=True), b"1")
    moved = beginning(6, "http://new/msmq/private$/order_queue$")
    room.passes((PEER_SILENCE_S - 1) * 1000)
    assert room.post(moved, b"2", address="10.0.0.7") == 500
    # To be refused is not to be heard.
    room.passes(1000)
    assert room.post(moved, b"2", address="10.0.0.7") == 200
    assert room.bodies(LEDGER) == [b"1", b"2"]


def test_a_stream_that_began_without_a_certificate_may_get_one(room: Mailroom) -> None:
    assert room.post(of_stream(1, start=True)) == 200
    assert room.post(of_stream(2), certificate=certificate("late")) == 200
    assert room.post(of_stream(3)) == 500


def certificate(name: str) -> bytes:
    """Make a certificate for a subject."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begins = datetime(2020, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=36_500))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.DER)


def test_a_stream_goes_on_after_a_crash(room: Mailroom) -> None:
    room.post(of_stream(1, start=True))
    room.driver.node.crash(room.driver.now, committed=False)
    room.app = room.driver.connect()
    assert room.post(of_stream(2), b"after") == 200
    assert room.bodies(LEDGER) == [b"body", b"after"]
    assert [post.url for post in room.passes(600)] == [RECEIPTS]


def test_the_end_of_a_message_is_told_if_it_asked_for_a_dead_letter(room: Mailroom) -> None:
    asking = of_stream(1, start=True)
    assert asking.msmq is not None
    room.post(structs.replace(asking, msmq=structs.replace(asking.msmq, dead_letter=True)))
    room.posted()
    handle = room.open(LEDGER)
    room.ok(api.Receive(handle, 1, 0))
    (final,) = room.posted()
    found = envelope_of(final)
    assert final.url == RECEIPTS
    assert found.commitment_receipt is not None
    assert found.commitment_receipt.positive
    assert found.commitment_receipt.id == MessageId(PEER, 1)
    assert found.msmq is not None
    assert found.msmq.message_class == MessageClass.ACK_RECEIVE


def test_whoever_says_that_he_is_us_ends_nothing_of_ours(room: Mailroom) -> None:
    own = Guid(room.manager.identifier)
    asking = structs.replace(
        message(1, source=own, to=LEDGER_URL), stream=Stream(own, 5, 1, receipts_to=RECEIPTS)
    )
    assert asking.msmq is not None
    room.post(structs.replace(asking, msmq=structs.replace(asking.msmq, dead_letter=True)))
    room.posted()
    room.ok(api.Receive(room.open(LEDGER), 1, 0))
    # Even then only who has the URL hears of it.
    assert [post.url for post in room.posted()] == [RECEIPTS]


# Receipts that are asked for.


@pytest.mark.spec("MQSRM-2.2.5.4-01", "MQSRM-3.1.7.3.1-01")
def test_receipts_go_where_a_message_wants_them(room: Mailroom) -> None:
    services = Services(
        durable=True,
        delivery=True,
        commitment=True,
        positive=True,
        negative=True,
        send_to="http://peer/msmq/private$/told",
    )
    room.posted()
    assert room.post(message(services=services, action="MSMQ:a label")) == 200
    (delivery,) = room.posted()
    found = envelope_of(delivery)
    assert delivery.url == "http://peer/msmq/private$/told"
    assert found.action == "MSMQ:a label"
    assert found.via == ORDERS_URL
    assert found.delivery_receipt is not None
    assert found.delivery_receipt.id == MessageId(PEER, 7)
    room.answered(delivery)
    room.posted()
    room.ok(api.Receive(room.open(), 1, 0))
    (commitment,) = room.posted()
    assert envelope_of(commitment).commitment_receipt is not None


def test_a_receipt_for_a_message_of_ours_is_a_message(room: Mailroom) -> None:
    told = envelope_of(_delivery_receipt(room))
    assert room.post(structs.replace(told, to=ORDERS_URL)) == 200
    assert room.classes(ORDERS) == [MessageClass.NORMAL, MessageClass.ACK_REACH_QUEUE]


def _delivery_receipt(room: Mailroom) -> OutgoingPost:
    services = Services(delivery=True, send_to="http://peer/msmq/private$/told")
    room.posted()
    room.post(message(services=services))
    (found,) = room.posted()
    return found


# Whose message it is, and whether it may come in.

WRITE = QueueAccess.WRITE_MESSAGE


@shows("MQSRM-3.1.5.1.5", 1)
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"message_class": MessageClass.REPORT}, id="a report"),
        pytest.param({"message_class": MessageClass.ACK_RECEIVE}, id="a class and no receipt"),
        pytest.param({"message_class": 0x3FFF}, id="a class of an application"),
        pytest.param({"end": CommitmentReceipt(START_S, True, MessageId(PEER, 1))}, id="no class"),
        pytest.param(
            {
                "end": CommitmentReceipt(START_S, False, MessageId(PEER, 1)),
                "message_class": MessageClass.ACK_RECEIVE,
            },
            id="another decision",
        ),
    ],
)
def test_what_is_neither_message_nor_receipt_is_refused(
    room: Mailroom, parts: dict[str, object]
) -> None:
    envelope = message(commitment_receipt=parts.pop("end", None))
    assert envelope.msmq is not None
    assert room.post(structs.replace(envelope, msmq=structs.replace(envelope.msmq, **parts))) == 400
    assert room.bodies() == []


@shows("MQSRM-3.1.5.1.7", 1)
@shows("MQSRM-3.1.5.1.10", 1)
@pytest.mark.parametrize("is_end", [True, False], ids=["commitment", "delivery"])
def test_a_receipt_comes_into_its_queue_once(room: Mailroom, is_end: bool) -> None:
    about = MessageId(Guid(room.manager.identifier), 9)
    told: dict[str, object] = {"delivery_receipt": DeliveryReceipt(START_S, about)}
    if is_end:
        told = {"commitment_receipt": CommitmentReceipt(START_S, True, about)}
    kind = MessageClass.ACK_RECEIVE if is_end else MessageClass.ACK_REACH_QUEUE
    msmq = Msmq(kind, 3, 0, PEER, START_S + 3600, correlation=about.to_bytes())
    receipt = message(msmq=msmq, **told)
    assert [room.post(receipt), room.post(receipt)] == [200, 200]
    assert room.classes(ORDERS) == [kind]


@shows("MQSRM-3.1.5.1.3", 1, 3, 15)
@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://alpha/msmq/private$/orders", 200),
        ("https://ALPHA:8443/msmq/private$/orders", 200),
        ("http://10.0.0.1/msmq/private$/orders", 200),
        ("http://shop.example.com/msmq/private$/orders", 200),
        ("http://public.example.com/msmq/private$/orders", 200),
        ("http://[fd00::1]:80/msmq/private$/orders", 200),
        ("http://beta/msmq/private$/orders", 400),
        ("http://alpha.example.com/msmq/private$/orders", 400),
        ("http://alpha@beta/msmq/private$/orders", 400),
        ("http:///msmq/private$/orders", 400),
    ],
)
def test_what_is_for_another_computer_is_refused(url: str, status: int) -> None:
    http = HttpConfig(
        enabled=True, url="https://public.example.com:443", hosts=("Shop.example.com", "[fd00::1]")
    )
    room = Mailroom(http=http, addresses=("10.0.0.1",))
    assert room.post(message(to=url)) == status
    assert len(room.bodies()) == (status == 200)


@shows("MQSRM-3.1.5.1.3", 12, 13, 14, 15)
@pytest.mark.parametrize(
    "envelope",
    [
        pytest.param(message(to="http://alpha/msmq/private$/missing"), id="no such queue"),
        pytest.param(message(stream=Stream(PEER, 5, 1, receipts_to=RECEIPTS)), id="a stream"),
        pytest.param(message(to=LEDGER_URL), id="no stream"),
    ],
)
def test_a_message_goes_into_a_queue_of_its_kind_or_nowhere(
    room: Mailroom, envelope: Envelope
) -> None:
    assert room.post(envelope) == 400
    assert room.bodies(ORDERS) + room.bodies(LEDGER) == []


@shows("MQSRM-3.1.5.1.12", 1, 2, 3, 7, 8, 10, 11)
@pytest.mark.parametrize(
    ("descriptor", "status"),
    [
        pytest.param(only(EVERYONE, WRITE), 200, id="everyone may"),
        pytest.param(only(unix_user(1000), WRITE), 400, id="somebody may"),
        pytest.param(only(EVERYONE, QueueAccess.GET_PROPERTIES), 400, id="everyone may look"),
        pytest.param(only(EVERYONE, 0), 400, id="nobody may"),
    ],
)
def test_it_comes_in_where_everybody_may_send(
    room: Mailroom, descriptor: bytes, status: int
) -> None:
    room.ok(api.SetSecurity(ORDERS, descriptor))
    assert room.post(message(), b"hello") == status
    room.ok(api.SetSecurity(ORDERS, b""))
    assert room.bodies() == ([b"hello"] if status == 200 else [])


@shows("MQSRM-2.2.5.1.1", 3)
@shows("MQSRM-2.2.6.17", 3)
@pytest.mark.parametrize("is_foreign", [True, False], ids=["expiresAt", "TTrq"])
@pytest.mark.parametrize("late_s", [-1, 400])
def test_what_is_too_late_is_discarded(room: Mailroom, is_foreign: bool, late_s: int) -> None:
    until_s = START_S - late_s
    envelope = message(sent_s=START_S - 1000)
    assert envelope.msmq is not None
    if is_foreign:
        envelope = structs.replace(envelope, expires_s=until_s, msmq=None, id=NO_ID)
    else:
        msmq = structs.replace(envelope.msmq, reach_by_s=until_s)
        envelope = structs.replace(envelope, msmq=msmq)
    assert room.post(envelope) == 200
    assert len(room.bodies()) == (late_s < 0)


@shows("MQSRM-3.1.1.1.5", 3, 4)
@shows("MQSRM-3.1.3.1", 1, 2, 3)
def test_what_came_is_remembered_over_a_crash(room: Mailroom) -> None:
    assert room.post(message(7)) == 200
    room.crash()
    assert [room.post(message(7)), room.post(message(8))] == [200, 200]
    assert len(room.bodies()) == 2


# Posts that come together.


def test_posts_of_one_turn_are_answered_by_one_write(room: Mailroom) -> None:
    node = room.driver.node
    posts = [room.made(message(number), b"%d" % number) for number in (7, 8, 9)]
    room.manager.posts_received(posts, room.driver.now)
    (persist,) = [output for output in node.take() if isinstance(output, Persist)]
    assert node.take() == []
    assert node.commit(persist, room.driver.now)
    assert [each for each in node.take() if isinstance(each, PostAnswer)] == [
        PostAnswer(post.number, 200) for post in posts
    ]
    assert room.bodies() == [b"7", b"8", b"9"]


def test_each_of_them_is_judged_by_itself(room: Mailroom) -> None:
    posts = [
        room.made(message(7), b"first"),
        structs.replace(room.made(message(8)), body=b"nonsense"),
        room.made(message(7), b"again"),
        room.made(message(9), b"of another", address="10.0.0.8"),
        room.made(of_stream(1, start=True), b"of a stream"),
        room.made(message(10, to=ORDERS_URL + "x"), b"elsewhere"),
        room.made(message(11), b"last"),
    ]
    assert room.hand_over(posts) == [200, 400, 200, 200, 200, 400, 200]
    assert room.bodies() == [b"first", b"of another", b"last"]
    assert room.bodies(LEDGER) == [b"of a stream"]


def test_what_the_disk_refuses_of_them_all_senders_keep(room: Mailroom) -> None:
    posts = [room.made(message(number)) for number in (7, 8)]
    assert room.hand_over(posts, fail=1) == [500, 500]
    assert room.bodies() == []
    assert room.hand_over([room.made(message(number)) for number in (7, 8)]) == [200, 200]
    assert len(room.bodies()) == 2


def test_where_room_ends_among_them_those_before_are_taken() -> None:
    room = Mailroom(quota_kb=64)
    posts = [room.made(message(number), bytes(6_000)) for number in range(7, 27)]
    found = room.hand_over(posts)
    count = len(room.bodies())
    assert 0 < count < len(posts)
    assert found == [200] * count + [500] * (len(posts) - count)


def test_while_the_queue_manager_is_offline_all_are_to_come_again() -> None:
    room = Mailroom(http=HttpConfig())
    assert room.hand_over([room.made(message(number)) for number in (7, 8)]) == [500, 500]
