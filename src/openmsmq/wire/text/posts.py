"""A message over HTTP as fields: the request as it was sent, and what its envelope says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Self

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import message_class_name
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.fields.cursor import Field, time_meaning
from openmsmq.wire.srmp.compound import Compound, read_compound
from openmsmq.wire.srmp.envelope import Envelope, Msmq
from openmsmq.wire.srmp.reading import read_envelope

START: Final = b"POST "
_END: Final = b"\r\n\r\n"
_HEAD_MAX_BYTES: Final = 16_384
_WHERE: Final = "POST"


class Post(msgspec.Struct, frozen=True):
    """A request with its head, of which only what the message needs is looked at."""

    line: str
    head_size: int
    content: bytes
    parts: Compound
    envelope: Envelope

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a whole request."""
        end = data.find(_END, 0, _HEAD_MAX_BYTES)
        if not data.startswith(START) or end < 0:
            raise DecodeError(_WHERE, 0, "no request with a head of at most 16 KiB")
        line, *headers = data[:end].decode("latin-1").split("\r\n")
        pairs = (header.partition(":") for header in headers)
        named = {name.lower(): value.strip() for name, _, value in pairs}
        content = data[end + len(_END) :]
        if named.get("content-length", "") != str(len(content)):
            raise DecodeError(_WHERE, end, f"{len(content)} bytes, not as many as it says")
        parts = read_compound(named.get("content-type", ""), content)
        envelope = read_envelope(parts.envelope)
        return cls(line, end + len(_END), content, parts, envelope)

    @property
    def summary(self) -> str:
        """What it says, in one line."""
        found = self.envelope
        if found.stream_receipt is not None:
            end = " and the end of it" if found.commitment_receipt is not None else ""
            return f"receipt for a stream up to {found.stream_receipt.last}{end}, to {found.to}"
        if found.delivery_receipt is not None:
            return f"receipt: {found.delivery_receipt.id} has arrived, to {found.to}"
        if found.commitment_receipt is not None:
            decision = "positive" if found.commitment_receipt.positive else "negative"
            return f"receipt: {found.commitment_receipt.id} has ended, {decision}, to {found.to}"
        place = "" if found.stream is None else f", number {found.stream.current} of a stream"
        return f"message {found.id} to {found.to}{place}, body {len(self.parts.body)} bytes"

    def fields(self) -> Iterator[Field]:
        """Show the request: its head, its envelope with what it says, and what is attached."""
        yield Field("Head", self.head_size, self.line)
        before = self.content.index(self.parts.envelope)
        if before:
            yield Field("PartHeader", before, "")
        yield Field("Envelope", len(self.parts.envelope), "")
        yield from _said(self.envelope)
        behind = len(self.content) - before - len(self.parts.envelope)
        if behind:
            yield Field("Attachments", behind, "")
            yield Field("body bytes", 0, len(self.parts.body))
            yield Field("extension bytes", 0, len(self.parts.extension))


def _said(envelope: Envelope) -> Iterator[Field]:
    yield Field("to", 0, envelope.to)
    yield Field("action", 0, envelope.action)
    yield Field("id", 0, str(envelope.id))
    if envelope.via:
        yield Field("via", 0, envelope.via)
    yield _moment("expiresAt", envelope.expires_s)
    if envelope.sent_s is not None:
        yield _moment("sentAt", envelope.sent_s)
    services, stream = envelope.services, envelope.stream
    if services is not None:
        yield Field("durable", 0, int(services.durable))
        if services.send_to:
            yield Field("sendTo", 0, services.send_to)
    if stream is not None:
        yield _stream("streamId", stream.source, stream.sequence)
        yield Field("current", 0, stream.current)
        if stream.previous is not None:
            yield Field("previous", 0, stream.previous)
        if stream.receipts_to:
            yield Field("sendReceiptsTo", 0, stream.receipts_to)
    yield from _receipts(envelope)
    if envelope.msmq is not None:
        yield from _msmq(envelope.msmq)


def _receipts(envelope: Envelope) -> Iterator[Field]:
    stream, delivery = envelope.stream_receipt, envelope.delivery_receipt
    if stream is not None:
        yield _stream("streamReceipt", stream.source, stream.sequence)
        yield Field("lastOrdinal", 0, stream.last)
    if delivery is not None:
        yield Field("deliveryReceipt", 0, str(delivery.id))
    if envelope.commitment_receipt is not None:
        decision = "positive" if envelope.commitment_receipt.positive else "negative"
        yield Field("commitmentReceipt", 0, str(envelope.commitment_receipt.id), decision)


def _msmq(msmq: Msmq) -> Iterator[Field]:
    yield Field("Class", 0, msmq.message_class, message_class_name(msmq.message_class))
    yield Field("Priority", 0, msmq.priority)
    yield Field("Correlation", 0, msmq.correlation.hex())
    yield Field("App", 0, msmq.application_tag)
    yield Field("BodyType", 0, msmq.body_type)
    yield Field("HashAlgorithm", 0, msmq.hash_algorithm)
    for name, wanted in (("Journal", msmq.journal), ("DeadLetter", msmq.dead_letter)):
        if wanted:
            yield Field(name, 0, 1)
    yield Field("SourceQmGuid", 0, str(msmq.source))
    yield _moment("TTrq", msmq.reach_by_s)


def _moment(name: str, unix_s: int) -> Field:
    return Field(name, 0, unix_s, "never" if unix_s == INFINITE_S else time_meaning(unix_s))


def _stream(name: str, source: Guid, sequence: int) -> Field:
    return Field(name, 0, f"{source}\\{sequence}")
