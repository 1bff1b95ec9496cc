"""Reading along over HTTP: nobody answers, nor tells of a stream, before the disk has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.analysis.sequences import Sequence
from openmsmq.protocol.posts import OutgoingPost
from openmsmq.sim.checks.facts import Kind, SimMessage, number_in
from openmsmq.sim.violation import Violation
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.srmp.compound import read_compound
from openmsmq.wire.srmp.envelope import Envelope, StreamReceipt
from openmsmq.wire.srmp.reading import read_envelope

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

_ACCEPTED = 200


class PostWatch:
    """Looks at requests as they leave, and at answers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sequences: dict[int, Sequence[SimMessage]] = {}
        """The messages of each stream, by its identifier."""

    def leaves(self, node: Node, post: OutgoingPost) -> Envelope | None:
        """Look at a request that a node writes; return what it says of a message of a stream."""
        self._world.books.wire.packet_count += 1
        envelope = self._read(node, post)
        if envelope.stream_receipt is not None:
            if envelope.commitment_receipt is None:
                self._check_stream(node, envelope.stream_receipt)
            return None
        if envelope.is_receipt:
            return None
        message = self._message(post.body)
        if message is None:
            raise Violation(f"{node.name} posted a message that nobody gave it")
        if message.certain and node.index not in message.durable_at:
            raise Violation(
                f"{node.name} posted {message} ({message.kind.value}) before it was on its disk"
            )
        message.on_wire = True
        if envelope.stream is None:
            return None
        place = envelope.stream
        sequence = self._sequences.setdefault(place.sequence, Sequence())
        twin = sequence.place(place.current, message)
        if twin is not message:
            raise Violation(
                f"{message} and {twin} were posted under the same number {place.current} of a "
                "stream"
            )
        return envelope

    def answers(self, node: Node, body: bytes, status: int) -> None:
        """Look at the answer of a request that had a message."""
        message = self._message(body)
        if status != _ACCEPTED or message is None or message.kind is not Kind.RECOVERABLE:
            return
        if message.target is not node:
            return
        if node.index not in message.durable_at and not self._may_be_dropped(message):
            raise Violation(
                f"{node.name} answered {status} for {message} (recoverable) before it was on its "
                "disk"
            )

    def text_of(self, post: OutgoingPost) -> str:
        """Return what a request is about, for the trace."""
        message = self._message(post.body)
        return "a receipt" if message is None else str(message)

    def _read(self, node: Node, post: OutgoingPost) -> Envelope:
        try:
            parts = read_compound(dict(post.headers)["Content-Type"], post.body)
            return read_envelope(parts.envelope)
        except DecodeError as error:
            raise Violation(f"{node.name} posted what nobody can read: {error}") from error

    def _message(self, body: bytes) -> SimMessage | None:
        number = number_in(body)
        return None if number is None else self._world.books.messages.get(number)

    def _check_stream(self, node: Node, receipt: StreamReceipt) -> None:
        sequence = self._sequences.get(receipt.sequence, Sequence())
        for number, message in sequence.take_up_to(receipt.last):
            if node.index not in message.durable_at and not self._may_be_dropped(message):
                raise Violation(
                    f"{node.name} told that a stream has come up to {receipt.last}, and {message} "
                    f"with number {number} is not on its disk"
                )

    def _may_be_dropped(self, message: SimMessage) -> bool:
        return message.may_have_expired() or self._world.books.may_be_refused(message)
