"""What attackers and careless applications do with signed and encrypted messages.

Whatever an application of ours signs arrives authenticated; nobody else's claim does, by no way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.client.context import ClientContext
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.certificates import Certificate
from openmsmq.client.messages.outgoing import OutgoingMessage
from openmsmq.client.queue import QueueHandle
from openmsmq.client.steps import Ahead, Collect
from openmsmq.client.verbs import queue as queue_verbs
from openmsmq.client.verbs.transactions import SINGLE_MESSAGE
from openmsmq.directory.limits import DIRECTORY_POLL_S
from openmsmq.manager.messages.reports import report_for
from openmsmq.model.errors import AccessDenied, IllegalPropertySize, InvalidParameter, MsmqError
from openmsmq.model.identity import NIL_GUID, Guid, SequenceId
from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.model.message import (
    AuthenticationLevel,
    AuthenticationRequest,
    HashAlgorithm,
    MessageClass,
    PrivacyLevel,
)
from openmsmq.model.queue import QueuePrivacy
from openmsmq.security.access.callers import Caller, anonymous
from openmsmq.security.access.sids import Sid, identities
from openmsmq.security.policy import BAD_MESSAGES_PER_KEY_MAX_COUNT, SecurityPolicy
from openmsmq.security.providers import ADVANCED
from openmsmq.security.signatures.signatures import sign
from openmsmq.wire.headers import transaction
from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnSource
from openmsmq.wire.headers.security import AUTHENTICATED, SIGNATURE_KIND, SecurityHeader, SenderKind
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.message_bytes import transaction_offset
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.strategies.keys import ANYTHING_GOES, certificate, private_key
from tests.strategies.messages import Draft
from tests.transfer.network import BETA, PEER, START_S, Network, addressed
from tests.transfer.test_protected_messages import (
    CALLER,
    ORDERS,
    SECRET,
    TRANSACTIONAL,
    USER,
    Pair,
    allow_only,
    level_of,
    own_key,
    signer,
    spoiled,
)

MALLORY = Sid.parse("S-1-5-21-1-2-3-6666")
FORGED = SecurityHeader(sender_id=bytes(USER), flags=SenderKind.SID | 0x0310)
LISTED = MultiQueueFormatHeader(AddressList((DirectName(r"OS:x\private$\y"),)))


@pytest.fixture
def pair(network: Network) -> Pair:
    return Pair(network)


def plain(opened: api.Opened, **wishes: Any) -> UserMessage:
    """Return a message that asks for nothing."""
    message = decode(addressed(Draft(body=SECRET, **wishes).packet(), opened))
    assert isinstance(message, UserMessage)
    return message


def forged(opened: api.Opened, **wishes: Any) -> bytes:
    """Return a message that says itself whose it is, and that this was proved."""
    return encode(msgspec.structs.replace(plain(opened, **wishes), security=FORGED))


def claims(message: UserMessage) -> int:
    assert message.security is not None
    return message.security.flags & (AUTHENTICATED | SIGNATURE_KIND)


# Claims.


@pytest.mark.parametrize("wishes", [{}, {"journal_on_success": True}, {"transactional": True}])
def test_an_application_cannot_say_that_its_message_is_authenticated(
    pair: Pair, wishes: dict[str, Any]
) -> None:
    own = api.OWN_TRANSACTION if wishes.get("transactional") else 0
    pair.alpha.create(ORDERS, transactional=bool(own))
    opened = pair.opened(ORDERS)
    packets = [forged(opened, **wishes)] * 2
    pair.alpha.ok(api.Send(opened.handle, packets, own))
    found = pair.alpha.messages(ORDERS)
    assert [claims(message) for message in found] == [0, 0]


def test_copies_of_what_was_sent_claim_nothing_either(pair: Pair) -> None:
    opened = pair.opened(pair.target())
    packet = forged(opened, journal_on_success=True, journal_on_failure=True)
    pair.send(opened, packet)
    [copy] = pair.alpha.messages("system$;journal")
    assert claims(copy) == 0
    pair.network.down.add(BETA)
    pair.network.cut(BETA)
    late = forged(opened, journal_on_failure=True, time_to_reach_queue_s=10)
    pair.send(opened, late)
    [dead] = pair.alpha.messages("system$;deadletter")
    assert claims(dead) == 0


def test_a_dead_letter_of_a_stranger_claims_nothing(pair: Pair) -> None:
    """It came too late to be examined, and stays here because its source thinks it arrived."""
    pair.target()
    opened = pair.opened(pair.beta.ok(api.GetNames(ORDERS)).private_name)
    message = plain(opened, journal_on_failure=True, time_to_reach_queue_s=1)
    header = msgspec.structs.replace(message.user, source=Guid(bytes([7] * 16)), sent_time_s=1)
    peer = pair.network.peer(PEER)
    peer.open_session(BETA)
    peer.write(msgspec.structs.replace(message, user=header, security=FORGED))
    [dead] = pair.beta.messages("system$;deadletter")
    assert claims(dead) == 0


def test_an_unknown_certificate_that_is_accepted_proves_no_sender(network: Network) -> None:
    pair = Pair(network, SecurityPolicy(accept_unregistered_certificates=True))
    opened = pair.opened(pair.target(authentication_required=True))
    packet = sign(
        pair.packet(opened), signer(), AuthenticationRequest.ALWAYS, pair.alpha.identifier
    )
    pair.send(opened, packet)
    message = pair.came()
    assert level_of(message) is AuthenticationLevel.SIGNATURE_20
    assert message.security is not None
    assert message.security.sender_id == b""
    assert message.security.sender_kind is SenderKind.NONE
    assert message.security.sender_certificate == certificate()


# What is behind the body of a message.


def broken_behind(packet: bytes) -> bytes:
    """Spoil all that lies behind the body."""
    end = outline(packet).body_end
    end += -end & 3
    return packet[:end] + b"\xff" * (len(packet) - end)


@pytest.mark.parametrize("here", [True, False])
def test_a_message_is_looked_at_though_it_begins_like_the_one_before(
    pair: Pair, here: bool
) -> None:
    pair.alpha.create(ORDERS)
    opened = pair.opened(ORDERS if here else pair.target())
    good = encode(msgspec.structs.replace(plain(opened), multi_queue=LISTED))
    refused = pair.alpha.ask(api.Send(opened.handle, [good, broken_behind(good)]))
    assert isinstance(refused, api.Failed)
    assert "not a message" in refused.detail


def test_a_message_that_is_too_long_with_the_names_of_all_queues_is_refused(pair: Pair) -> None:
    pair.alpha.create(ORDERS)
    pair.alpha.create(r"private$\more")
    opened = pair.opened(r"DIRECT=OS:ALPHA\private$\orders,DIRECT=OS:ALPHA\private$\more")
    size = PACKET_MAX_BYTES - len(Draft(body=b"").packet())
    refused = pair.alpha.ask(api.Send(opened.handle, [Draft(body=bytes(size)).packet()]))
    assert isinstance(refused, api.Failed)
    assert "shorten the body" in refused.detail


# Batches of encrypted messages.


def sequence(pair: Pair, opened: api.Opened, count: int) -> list[UserMessage]:
    """Return encrypted messages of a stranger's sequence."""
    found = []
    for number in range(1, count + 1):
        message = plain(opened, transactional=True, priority=0)
        header = msgspec.structs.replace(
            message.user, source=Guid(bytes([7] * 16)), sent_time_s=START_S, message_number=number
        )
        place = TransactionHeader(SequenceId(1, START_S), number, number - 1)
        packet = encode(msgspec.structs.replace(message, user=header, transaction=place))
        sealed = decode(
            pair.encrypt(packet, ANYTHING_GOES, PrivacyLevel.BASE, pair.published()[:1])
        )
        assert isinstance(sealed, UserMessage)
        found.append(sealed)
    return found


@pytest.mark.parametrize("bit", [transaction.FINAL_ACK, transaction.CONNECTOR])
def test_an_encrypted_message_with_wishes_of_its_own_is_not_like_the_one_before(
    pair: Pair, bit: int
) -> None:
    opened = pair.opened(pair.target(transactional=True))
    first, second = map(encode, sequence(pair, opened, 2))
    opener_keys = pair.beta.manager.keys.receive
    opener_keys.decrypt(first, pair.network.now.ticks_ms)
    opener = opener_keys.opener(first, pair.network.now.ticks_ms)
    assert opener is not None
    assert opener.fits(second)
    at = transaction_offset(second)
    assert not opener.fits(second[:at] + bytes([second[at] | bit]) + second[at + 1 :])


def test_a_session_key_that_was_given_up_opens_nothing_in_a_batch_either(pair: Pair) -> None:
    opened = pair.opened(pair.target())

    def sealed() -> bytes:
        return pair.encrypt(
            encode(plain(opened)), ANYTHING_GOES, PrivacyLevel.BASE, pair.published()
        )

    bad = [spoiled(sealed()) for _ in range(BAD_MESSAGES_PER_KEY_MAX_COUNT)]
    pair.alpha.ok(api.Send(opened.handle, [sealed(), *bad]))
    pair.network.run(10_000)
    # The key is remembered still, and would open them.
    assert len(pair.beta.manager.keys.receive.cache) == 1
    pair.alpha.ok(api.Send(opened.handle, [sealed()] * 5))
    pair.network.run(10_000)
    assert pair.beta.bodies(ORDERS) == [SECRET]


def test_a_batch_ends_where_the_queue_changes_its_mind(pair: Pair) -> None:
    opened = pair.opened(pair.target())
    packets = [
        pair.encrypt(encode(plain(opened)), ANYTHING_GOES, PrivacyLevel.BASE, pair.published())
        for _ in range(5)
    ]
    pair.alpha.ok(api.Send(opened.handle, packets))
    pair.network.run(60_000)
    pair.beta.ok(api.ChangeQueue(ORDERS, privacy=QueuePrivacy.NONE))
    pair.alpha.ok(api.Send(opened.handle, packets))
    pair.network.run(60_000)
    assert len(pair.beta.bodies(ORDERS)) == 5


# Certificates.


def asks(pair: Pair, connection: int, call: int, request: api.AnyRequest) -> api.AnyReply | None:
    pair.alpha.manager.request(connection, call, request, pair.network.now)
    pair.alpha.pump()
    return pair.alpha.answers.get(call)


def test_nobody_registers_the_certificate_of_somebody_else(pair: Pair) -> None:
    pair.register(certificate())
    pair.alpha.manager.connected(3, Caller("mallory", MALLORY, identities(MALLORY)))
    refused = asks(pair, 3, 900_001, api.RegisterCertificate(certificate()))
    assert isinstance(refused, api.Failed)
    assert "for another user" in refused.detail
    # Once more by its owner is no mistake.
    again = asks(pair, 2, 900_002, api.RegisterCertificate(certificate()))
    assert again == api.Certificates(bytes(USER), [certificate()])


class Eager(dict[int, api.AnyReply]):
    """Answers of which one is followed by the next call at once."""

    def __init__(self, call: int, then: Callable[[], None]) -> None:
        super().__init__()
        self._call = call
        self._then = then

    def __setitem__(self, call: int, reply: api.AnyReply) -> None:
        super().__setitem__(call, reply)
        if call == self._call:
            self._then()


def test_two_changes_at_once_do_not_undo_each_other(pair: Pair) -> None:
    """BETA has a copy, which hears of a change only after the directory has it."""
    beta = pair.beta
    beta.manager.connected(2, CALLER)

    def register(call: int, seed: int) -> None:
        request = api.RegisterCertificate(certificate(seed=seed))
        beta.manager.request(2, call, request, pair.network.now)
        beta.pump()

    register(900_001, 0)
    pair.network.run(DIRECTORY_POLL_S * 1000)
    beta.answers = Eager(900_002, lambda: register(900_004, 2))
    register(900_002, 1)
    register(900_003, 2)
    refused = beta.answers[900_003]
    assert isinstance(refused, api.Failed)
    assert "try again" in refused.detail
    pair.network.run()
    # It is answered only when the copy has it, so that the next change begins with it.
    assert isinstance(beta.answers[900_002], api.Certificates)
    wanted = [certificate(seed=seed) for seed in range(3)]
    assert beta.answers[900_004] == api.Certificates(bytes(USER), wanted)
    known = pair.alpha.manager.directory.copy.image.user_of(bytes(USER))
    assert known is not None
    assert list(known.certificates) == wanted


# Keys.


def test_a_kind_of_key_that_is_too_old_is_renewed_though_another_is_newer(
    network: Network,
) -> None:
    pair = Pair(network)
    assert len(pair.beta.manager.keys.public) == 3
    lifetime_s = pair.beta.config.security.key_lifetime_s
    from_later = own_key(created_time_s=START_S + lifetime_s // 2)
    pair.beta.keys = [from_later, *(key for key in pair.beta.keys if key.provider is not ADVANCED)]
    pair.beta.crash()
    wake_ms = pair.beta.manager.keys.next_wake_ms(network.now)
    assert wake_ms is not None
    assert wake_ms - network.now.ticks_ms <= lifetime_s * 1000


def test_keys_that_are_too_short_are_not_shown_to_anybody(network: Network) -> None:
    pair = Pair(network, SecurityPolicy(smallest_key_bits=2048))
    assert pair.beta.manager.keys.public == ()
    assert pair.published() == ()


# The client.


class Application:
    """Carries out the steps of the client with a queue manager, as a user."""

    def __init__(self, pair: Pair, caller: Caller = CALLER) -> None:
        self._pair = pair
        self._connection = 50
        pair.alpha.manager.connected(self._connection, caller)
        self.context = ClientContext()
        identifier = bytes(pair.alpha.identifier)
        self.context.connected(api.Welcome(1, "OpenMSMQ", "ALPHA", identifier))
        self._calls = 5_000_000

    def queue(self, name: str) -> QueueHandle:
        return QueueHandle(self.context, name, DEFAULT_FORMATTER)

    def run(self, steps: Generator[Any, Any, Any]) -> Any:
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                return end.value
            if isinstance(step, Collect):
                outcome = self._pair.alpha.answers[step.call]
                continue
            self._calls += 1
            request = step.request if isinstance(step, Ahead) else step
            reply = asks(self._pair, self._connection, self._calls, request)
            outcome = self._calls if isinstance(step, Ahead) else reply


TEXTS = st.text(st.characters(codec="utf-16-le", exclude_characters="\0"), max_size=20)
QUEUES = st.sampled_from(
    [
        None,
        r"private$\answers",
        r"DIRECT=OS:beta\private$\other",
        f"PRIVATE={Guid(bytes([9] * 16))}\\7",
        f"PUBLIC={Guid(bytes([8] * 16))}",
    ]
)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "label": TEXTS,
        "priority": st.integers(0, 7),
        "recoverable": st.booleans(),
        "correlation_id": st.binary(min_size=20, max_size=20),
        "response_queue": QUEUES,
        "admin_queue": QUEUES,
        "acknowledge": st.sampled_from([0, 1, 4, 15]),
        "time_to_reach_queue_s": st.sampled_from([None, 1000, 4000]),
        "time_to_be_received_s": st.sampled_from([None, 10_000]),
        "journal_on_failure": st.booleans(),
        "journal_on_success": st.booleans(),
        "dead_letter_queue": st.sampled_from([None, r"private$\answers"]),
        "application_tag": st.integers(0, 2**32 - 1),
        "body_type": st.sampled_from([None, 8, 17]),
        "trace_queue": st.sampled_from([None, Guid(bytes([5] * 16))]),
        "connector_type": st.sampled_from([None, Guid(bytes([6] * 16))]),
    },
)
EXTENSIONS = st.sampled_from([{}, {"extension": b"more"}, {"headers": {"a": "b"}}])
PLACES = ("local", "direct", "private", "public", "list")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    wishes=WISHES,
    extension=EXTENSIONS,
    body=st.one_of(TEXTS, st.binary(max_size=100)),
    place=st.sampled_from(PLACES),
    transactional=st.booleans(),
    encrypt=st.booleans(),
    many=st.booleans(),
    signature=st.sampled_from(
        [
            AuthenticationRequest.ALWAYS,
            AuthenticationRequest.EXACT,
            AuthenticationRequest.SIGNATURE_10,
            AuthenticationRequest.SIGNATURE_20,
        ]
    ),
    hash_algorithm=st.sampled_from([HashAlgorithm.SHA512, HashAlgorithm.SHA1]),
)
def test_whatever_an_application_signs_arrives_as_it_was_sent(
    wishes: dict[str, Any],
    extension: dict[str, Any],
    body: str | bytes,
    place: str,
    transactional: bool,
    encrypt: bool,
    many: bool,
    signature: AuthenticationRequest,
    hash_algorithm: HashAlgorithm,
) -> None:
    pair = Pair(Network())
    pair.register(certificate())
    encrypt = encrypt and place in ("local", "private", "public")
    demands = {"transactional": transactional, "authentication_required": True}
    if encrypt:
        demands["privacy"] = QueuePrivacy.BODY
    name, keeper, path = destination(pair, place, demands)
    application = Application(pair)
    queue = application.queue(name)
    message = OutgoingMessage(
        body=body,
        certificate=Certificate(private_key(), certificate(), hash_algorithm),
        signature=signature,
        encrypt=encrypt,
        **wishes,
        **extension,
    )
    single = SINGLE_MESSAGE if transactional else None
    if many:
        application.run(
            queue_verbs.send_many(
                queue,
                [message] * 2,
                transaction=single,
                certificate=message.certificate,
                signature=signature,
                encrypt=encrypt,
            )
        )
    else:
        application.run(queue_verbs.send(queue, message, transaction=single))
    pair.network.run(60_000)
    found = keeper.messages(path)
    assert len(found) == 1 + many
    draft = decode(queue.builder.build(message, DEFAULT_FORMATTER, transactional))
    assert isinstance(draft, UserMessage)
    wanted = AuthenticationLevel.SIGNATURE_20
    if place == "list" or signature in (
        AuthenticationRequest.ALWAYS,
        AuthenticationRequest.EXACT,
    ):
        # The directory is ours, and so are all queue managers in it.
        wanted = AuthenticationLevel.SIGNATURE_30
    elif signature is AuthenticationRequest.SIGNATURE_10:
        wanted = AuthenticationLevel.SIGNATURE_10
    for came in found:
        assert level_of(came) is wanted
        assert came.security is not None
        assert came.security.sender_id == bytes(USER)
        assert said(came) == said(draft)
        assert came.properties.privacy_level == (PrivacyLevel.ADVANCED if encrypt else 0)


def said(message: UserMessage) -> tuple[object, ...]:
    """Return what an application has said of a message."""
    properties, header = message.properties, message.user
    return (
        properties.body,
        properties.label,
        properties.extension,
        properties.correlation_id,
        properties.application_tag,
        properties.body_type,
        properties.acknowledge,
        message.base.priority,
        header.response_queue,
        header.admin_queue,
        header.connector_type,
        header.journal_on_failure,
        header.journal_on_success,
        message.debug,
    )


def destination(pair: Pair, place: str, demands: dict[str, Any]) -> tuple[str, Any, str]:
    """Make a queue; give its name for the application, who keeps it, and its name there."""
    if place == "local":
        pair.alpha.create(ORDERS, **demands)
        return ORDERS, pair.alpha, ORDERS
    if place == "public":
        pair.beta.ok_soon(api.CreateQueue(r".\orders", base_priority=3, **demands))
        pair.network.run(DIRECTORY_POLL_S * 1000)
        return r"BETA\orders", pair.beta, r".\orders"
    private = pair.target(**demands)
    if place == "private":
        return private, pair.beta, ORDERS
    direct = rf"DIRECT=OS:beta\{ORDERS}"
    if place == "direct":
        return direct, pair.beta, ORDERS
    pair.alpha.create(r"private$\also", **demands)
    return rf"{direct},DIRECT=OS:ALPHA\private$\also", pair.beta, ORDERS


@pytest.mark.parametrize(
    ("own", "given_"),
    [
        ({"encrypt": True}, {"certificate"}),
        ({"certificate": True}, {"encrypt"}),
        ({"certificate": True}, set()),
        ({"encrypt": True}, set()),
    ],
)
def test_no_message_of_many_goes_with_less_protection_than_it_asks_for(
    pair: Pair, own: dict[str, bool], given_: set[str]
) -> None:
    name = pair.target()
    mine = Certificate(private_key(), certificate())
    values: dict[str, Any] = {"certificate": mine, "encrypt": True}
    application = Application(pair)
    message = OutgoingMessage(body=b"secret", **{key: values[key] for key in own})
    steps = queue_verbs.send_many(
        application.queue(name), [message], **{key: values[key] for key in given_}
    )
    with pytest.raises(InvalidParameter, match="protected in its own way"):
        application.run(steps)
    pair.network.run(60_000)
    assert pair.beta.bodies(ORDERS) == []


def test_a_list_is_not_encrypted_and_nothing_is_sent_in_plain(pair: Pair) -> None:
    name = f"{pair.target()},{pair.target(TRANSACTIONAL)}"
    application = Application(pair)
    with pytest.raises(MsmqError, match="encrypted for one queue manager"):
        application.run(queue_verbs.send(application.queue(name), b"secret", encrypt=True))


def test_a_body_that_is_too_long_when_it_is_protected_is_refused_in_words(pair: Pair) -> None:
    name = pair.target()
    application = Application(pair)
    queue = application.queue(name)
    mine = Certificate(private_key(), certificate())
    size = PACKET_MAX_BYTES - 200
    for options in ({"encrypt": True}, {"certificate": mine}):
        with pytest.raises(IllegalPropertySize, match="shorten the body"):
            application.run(queue_verbs.send(queue, bytes(size), **options))


def test_nobody_signs_as_nobody(pair: Pair) -> None:
    application = Application(pair, anonymous("127.0.0.9"))
    mine = Certificate(private_key(), certificate())
    pair.alpha.create(ORDERS)
    steps = queue_verbs.send(application.queue(ORDERS), b"1", certificate=mine)
    with pytest.raises(AccessDenied, match="connect as a user or with a token"):
        application.run(steps)


# Acknowledgments: what a queue manager writes for others.


@pytest.mark.parametrize("demand", ["authentication", "privacy", "access"])
def test_no_stranger_gets_into_a_closed_queue_by_an_acknowledgment(pair: Pair, demand: str) -> None:
    pair.beta.create(r"private$\open")
    pair.target(
        authentication_required=demand == "authentication",
        privacy=QueuePrivacy.BODY if demand == "privacy" else QueuePrivacy.OPTIONAL,
    )
    if demand == "access":
        allow_only(pair, USER)
    opened = pair.opened(pair.beta.ok(api.GetNames(r"private$\open")).private_name)
    late = plain(opened, admin_queue=rf"OS:BETA\{ORDERS}", acknowledge=15, time_to_reach_queue_s=1)
    header = msgspec.structs.replace(late.user, source=Guid(bytes([7] * 16)), sent_time_s=1)
    peer = pair.network.peer(PEER)
    peer.open_session(BETA)
    peer.write(msgspec.structs.replace(late, user=header))
    assert pair.beta.messages(ORDERS) == []


def test_the_acknowledgment_of_a_message_that_is_as_long_as_can_be_has_no_body(pair: Pair) -> None:
    opened = pair.opened(pair.target())
    short = plain(opened, acknowledge=15)
    header = msgspec.structs.replace(
        short.user, source=Guid(bytes([7] * 16)), admin_queue=PrivateOnSource(9)
    )
    room = PACKET_MAX_BYTES - len(encode(msgspec.structs.replace(short, user=header)))
    body = bytes(len(short.properties.body) + (room & ~3))
    properties = msgspec.structs.replace(
        short.properties, body=body, body_size=len(body), allocated_size=len(body), padding=b""
    )
    longest = encode(msgspec.structs.replace(short, user=header, properties=properties))
    assert len(longest) > PACKET_MAX_BYTES - 4
    report = report_for(
        longest,
        MessageClass.NACK_REACH_QUEUE_TIMEOUT,
        pair.beta.manager.identifier,
        lambda _name: NIL_GUID,
        lambda _name: None,
    )
    assert report is not None
    found = decode(report.packet)
    assert isinstance(found, UserMessage)
    assert found.properties.body == b""
    assert found.properties.message_class == MessageClass.NACK_REACH_QUEUE_TIMEOUT
