"""What a program says of a message by headers and body, as the client's options.

Each property that `openmsmq send` has an option for has a header: `--label` is `Msmq-Label`. So
they come from the one table of properties.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from email.message import Message
from typing import Any, Final, cast

import msgspec

from openmsmq.client.messages.outgoing import SendOptions
from openmsmq.client.messages.properties import PROPERTIES
from openmsmq.client.messages.property import Kind, Property
from openmsmq.model.identity import MessageId
from openmsmq.model.limits import VOUCHER_DIGEST_BYTES
from openmsmq.model.message import ACK_REQUEST_WORDS
from openmsmq.runtime.http.heads import Request

PREFIX: Final = "msmq-"
KEY: Final = "idempotency-key"

_TEXT: Final = "text"
_BYTES: Final = "bytes"
BODY_KINDS: Final = {
    "text/plain": _TEXT,
    "application/json": _TEXT,
    "application/xml": _BYTES,
    "text/xml": _BYTES,
    "application/octet-stream": _BYTES,
}
"""What becomes of bodies: text as VT_BSTR, or their bytes as they are."""

_CHARSETS: Final = ("utf-8", "us-ascii", "iso-8859-1", "utf-16", "utf-16le", "utf-16be")
_XML_TYPE: Final = 0
"""The body type of XML as .NET writes it."""
_YES: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_DIGITS: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")


class BadWish(Exception):
    """Something in a header or a body that means nothing; `status` is what it is answered with."""

    def __init__(self, problem: str, status: int = 400) -> None:
        super().__init__(problem)
        self.status = status


class Wishes(msgspec.Struct, frozen=True):
    """What is to be sent, and how."""

    body: str | bytes
    options: SendOptions
    transactional: bool | None
    """Whether in a transaction; None for what the queue needs."""
    key: str
    """Under which it is sent; empty for none."""
    digest: bytes
    """Stands for all of it."""


def header_of(row: Property[Any]) -> str:
    """Return the header that sets a property; empty if none does."""
    return f"Msmq-{row.flags[0].removeprefix('--').title()}" if row.flags and row.sent else ""


_ROWS: Final = {header_of(row).lower(): row for row in PROPERTIES.values() if header_of(row)}
TRANSACTIONAL: Final = "Msmq-Transactional"


def read_wishes(request: Request, queue: str) -> Wishes:
    """Read what a request wants sent to a queue, or raise `BadWish`."""
    headers = request.head.headers
    options: dict[str, Any] = {"recoverable": True}
    transactional: bool | None = None
    said: list[tuple[str, str]] = []
    for name, value in headers.items():
        if not name.startswith(PREFIX):
            continue
        said.append((name, value))
        if name == TRANSACTIONAL.lower():
            transactional = _yes_or_no(name, value)
            continue
        row = _ROWS.get(name)
        if row is None:
            known = ", ".join([*map(header_of, _ROWS.values()), TRANSACTIONAL])
            raise BadWish(f"there is no header {name}; there are {known}")
        options[row.name] = _value(row, name, value)
    body, body_type = _body(headers.get("content-type", ""), request.body)
    if body_type is not None:
        options["body_type"] = body_type
    digest = hashlib.sha256()
    for part in (queue, headers.get("content-type", ""), repr(sorted(said))):
        digest.update(f"{part}\0".encode())
    digest.update(request.body)
    return Wishes(
        body,
        cast("SendOptions", options),
        transactional,
        _key(headers.get(KEY)),
        digest.digest()[:VOUCHER_DIGEST_BYTES],
    )


def _key(value: str | None) -> str:
    if value is None:
        return ""
    key = value
    if len(value) > 1 and value[0] == value[-1] == '"':
        key = value[1:-1]
    if not key:
        raise BadWish("the Idempotency-Key is empty: give each message a key of its own, or none")
    return key


def _value(row: Property[Any], name: str, value: str) -> object:
    """Read the value of a header."""
    special = _SPECIAL.get(row.name)
    if special is not None:
        return special(name, value)
    if row.kind is Kind.YES_NO:
        return _yes_or_no(name, value)
    if row.kind in (Kind.NUMBER, Kind.SMALL):
        return _number(name, value)
    return value


def _yes_or_no(name: str, value: str) -> bool:
    found = _YES.get(value.lower())
    if found is None:
        raise BadWish(f"{name} is {value!r}: give true or false")
    return found


def _number(name: str, value: str) -> int:
    if not _DIGITS.fullmatch(value) or "." in value:
        raise BadWish(f"{name} is {value!r}: give a number")
    return int(value)


def _seconds(name: str, value: str) -> float:
    if not _DIGITS.fullmatch(value):
        raise BadWish(f"{name} is {value!r}: give seconds")
    return float(value)


def _acknowledge(name: str, value: str) -> int:
    found = ACK_REQUEST_WORDS.get(value.lower())
    if found is None:
        raise BadWish(f"{name} is {value!r}: give one of {', '.join(ACK_REQUEST_WORDS)}")
    return found


def _identifier(name: str, value: str) -> bytes:
    try:
        return MessageId.read(value).to_bytes()
    except ValueError as error:
        raise BadWish(f"{name} is wrong: {error}") from None


_SPECIAL: Final[dict[str, Callable[[str, str], object]]] = {
    "acknowledge": _acknowledge,
    "correlation_id": _identifier,
    "time_to_reach_queue_s": _seconds,
    "time_to_be_received_s": _seconds,
}


def _body(content_type: str, body: bytes) -> tuple[str | bytes, int | None]:
    """Return the body as the formatter takes it, and its type if the formatter does not know it."""
    parsed = Message()
    parsed["content-type"] = content_type or "missing/missing"
    kind = parsed.get_content_type()
    treatment = BODY_KINDS.get(kind)
    if treatment is None or not content_type:
        raise BadWish(
            f"a body of type {content_type[:100] or '(none)'}: give a Content-Type of "
            f"{', '.join(BODY_KINDS)}",
            415,
        )
    if treatment is _BYTES:
        return body, _XML_TYPE if kind.endswith("/xml") else None
    charset = str(parsed.get_param("charset", "utf-8")).lower()
    if charset not in _CHARSETS:
        raise BadWish(f"the charset {charset[:40]!r} is not known: use UTF-8", 415)
    try:
        return body.decode(charset), None
    except UnicodeDecodeError as error:
        raise BadWish(f"the body is no {charset}: {error}") from None


def headers_help() -> Mapping[str, tuple[str, Kind]]:
    """Return all headers of messages, what they mean, and of what kind their values are."""
    found = {header_of(row): (row.sent, row.kind) for row in _ROWS.values()}
    found[TRANSACTIONAL] = (
        "Whether it is sent in a transaction of its own; of its own accord if the queue needs it.",
        Kind.YES_NO,
    )
    return found
