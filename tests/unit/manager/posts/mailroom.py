"""A queue manager that speaks HTTP, and posts to it, for tests of single operations."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.manager.config import HttpConfig, ManagerConfig
from openmsmq.manager.manager import QueueManager
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.posts import OutgoingPost, PostAnswer, PostFailure, ReceivedPost
from openmsmq.wire.srmp.compound import Compound, read_compound, write_compound
from openmsmq.wire.srmp.envelope import (
    CommitmentReceipt,
    Envelope,
    Msmq,
    Services,
    Stream,
    StreamReceipt,
)
from openmsmq.wire.srmp.reading import read_envelope
from openmsmq.wire.srmp.writing import write_envelope
from tests.property.driver import Driver
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office

PEER = Guid(bytes(range(16)))
STRANGER = "10.0.0.9"
ORDERS_URL = "http://alpha/msmq/private$/orders"
LEDGER_URL = "http://alpha/msmq/private$/ledger"
RECEIPTS = "http://peer/msmq/private$/order_queue$?SenderStream=7"
RECEIPTS_PATH = "/msmq/private$/order_queue$"
BETA_PLAIN = "DIRECT=HTTP://beta:8080/msmq/private$/plain"
BETA_STREAM = "DIRECT=HTTPS://beta/msmq/private$/stream"


def message(number: int = 7, *, source: Guid = PEER, **parts: Any) -> Envelope:
    """A recoverable message for the plain queue."""
    msmq = Msmq(0, 3, 0, source, START_S + 3600)
    filled: dict[str, Any] = {
        "to": ORDERS_URL,
        "sent_s": START_S,
        "id": MessageId(source, number),
        "services": Services(durable=True),
        "msmq": msmq,
    }
    return Envelope(**(filled | parts))


def of_stream(current: int, *, start: bool = False, sequence: int = 5, **parts: Any) -> Envelope:
    """A message of a stream for the transactional queue."""
    stream = Stream(PEER, sequence, current, receipts_to=RECEIPTS if start else "")
    return message(current, to=LEDGER_URL, stream=stream, **parts)


class _Driver(Driver):
    """Keeps what was asked of it."""

    def pump(self, *, fail: int = 0) -> int:
        """Carry out everything, and keep it."""
        failed = self.node.pump(self.now, fail=fail)
        self.seen = [*getattr(self, "seen", []), *self.node.outputs]
        self.node.outputs = []
        return failed


class Mailroom(Office):
    """Posts in, answers out; and what is posted from here."""

    driver: _Driver

    def __init__(self, **config: Any) -> None:
        http = config.pop("http", HttpConfig(enabled=True))
        config_value = ManagerConfig(name="ALPHA", http=http, **config)
        self.driver = _Driver(config_value, Instant(0, START_S))
        self.app = self.driver.connect()
        for name in (ORDERS, LEDGER):
            self.ok(api.CreateQueue(name, transactional=name == LEDGER))
        self._last_number = 0
        self._read_count = 0

    @property
    def manager(self) -> QueueManager:
        """The queue manager."""
        return self.driver.node.manager

    def made(self, envelope: Envelope, body: bytes = b"body", **parts: Any) -> ReceivedPost:
        """Return a post as it comes from a stranger."""
        self._last_number += 1
        path = envelope.to.partition("://")[2].partition("/")[2]
        queue = path.partition("?")[0].replace("msmq/", "").replace("/", "\\")
        kind, content = "text/xml", write_envelope(envelope)
        if not envelope.is_receipt:
            kind, content = write_compound(Compound(content, body), PEER, 1)
        post = ReceivedPost(
            self._last_number, queue, f"/{path}", "alpha", {"content-type": kind}, content, STRANGER
        )
        return structs.replace(post, **parts)

    def hand_in(self, envelope: Envelope, body: bytes = b"body", **parts: Any) -> int:
        """Let a post come, and nothing follow yet."""
        post = self.made(envelope, body, **parts)
        self.manager.posts_received([post], self.driver.now)
        return post.number

    def hand_over(self, posts: list[ReceivedPost], fail: int = 0) -> list[int]:
        """Let posts come together; gives the statuses of their answers."""
        self.manager.posts_received(posts, self.driver.now)
        self.driver.pump(fail=fail)
        answers = [output for output in self.driver.seen if isinstance(output, PostAnswer)]
        found = {answer.number: answer.status for answer in answers}
        return [found[post.number] for post in posts]

    def post(self, envelope: Envelope, body: bytes = b"body", fail: int = 0, **parts: Any) -> int:
        """Post something; gives the status of the answer."""
        return self.hand_over([self.made(envelope, body, **parts)], fail)[0]

    def posted(self) -> list[OutgoingPost]:
        """What was posted from here since the last look."""
        outputs = self.driver.seen[self._read_count :]
        self._read_count = len(self.driver.seen)
        return [output for output in outputs if isinstance(output, OutgoingPost)]

    def sends(self, name: str, *bodies: bytes, **wishes: Any) -> list[OutgoingPost]:
        """Send messages to a URL; gives what is posted."""
        self.posted()
        inside = name.endswith("/stream")
        destination = name.removeprefix("DIRECT=")
        packets = [
            Draft(body=body, transactional=inside, **wishes).packet(destination) for body in bodies
        ]
        handle = self.open(name, AccessMode.SEND)
        self.ok(api.Send(handle, packets, api.OWN_TRANSACTION if inside else 0))
        self.ok(api.CloseQueue(handle))
        return self.posted()

    def answered(self, post: OutgoingPost, status: int = 200) -> None:
        """Let a post of ours be answered."""
        self.manager.post_answered(post.call, status, self.driver.now)
        self.driver.pump()

    def failed(self, post: OutgoingPost, failure: PostFailure = PostFailure.LOST) -> None:
        """Let a post of ours have no answer."""
        self.manager.post_failed(post.call, failure, self.driver.now, "no answer")
        self.driver.pump()

    def passes(self, ms: int) -> list[OutgoingPost]:
        """Let time pass; gives what is posted meanwhile."""
        self.posted()
        now = self.driver.now
        self.driver.now = Instant(now.ticks_ms + ms, now.unix_s + ms // 1000)
        self.driver.wake()
        self.driver.pump()
        return self.posted()

    def crash(self) -> None:
        """Lose the memory, and begin again."""
        self.posted()
        self.driver.node.crash(self.driver.now, committed=False)
        self.app = self.driver.connect()
        self.driver.pump()

    def waiting(self, name: str) -> int:
        """How many messages wait in an outgoing queue; none in one that was forgotten."""
        found = self.ask(api.ListOutgoing(name))
        return found.queues[0].message_count if isinstance(found, api.OutgoingQueues) else 0


def envelope_of(post: OutgoingPost) -> Envelope:
    """Read what was posted."""
    parts = read_compound(dict(post.headers)["Content-Type"], post.body)
    return read_envelope(parts.envelope)


def body_of(post: OutgoingPost) -> bytes:
    """Read the body of what was posted."""
    return read_compound(dict(post.headers)["Content-Type"], post.body).body


def stream_of(post: OutgoingPost) -> Stream:
    """Read the place of what was posted in its stream."""
    found = envelope_of(post).stream
    assert found is not None
    return found


def target_of(post: OutgoingPost) -> str:
    """Return where receipts go, if a post is the first of its stream."""
    return stream_of(post).receipts_to.partition("ALPHA")[2]


def receipt(post: OutgoingPost, end: MessageClass | None = None, **parts: int) -> Envelope:
    """What the receiver of a post may say of it, or wrongly say."""
    stream, kind = stream_of(post), MessageClass.ORDER_ACK if end is None else end
    decision, id = None, envelope_of(post).id
    if end is not None:
        positive = end is MessageClass.ACK_RECEIVE
        told_of = MessageId(id.source, parts.get("number", id.number))
        decision = CommitmentReceipt(START_S, positive, told_of)
    sequence, last = parts.get("sequence", stream.sequence), parts.get("last", stream.current)
    return Envelope(
        to=f"http://alpha{RECEIPTS_PATH}",
        action="MSMQ:QM Ordering Ack",
        stream_receipt=StreamReceipt(stream.source, sequence, last),
        commitment_receipt=decision,
        msmq=Msmq(kind, 0, 0, PEER, START_S + 3600),
    )
