"""Messages that go to many at once: the post of HTTP that a payload of PGM is. [MQSRM 2.1.2, 4.5]

Who reads one heeds of its header only the type of the content; the rest says nothing new.
"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.srmp.compound import Compound, read_compound, write_compound
from openmsmq.wire.srmp.departing import SOAP_ACTION, envelope_of
from openmsmq.wire.srmp.envelope import Envelope
from openmsmq.wire.srmp.reading import read_envelope
from openmsmq.wire.srmp.writing import write_envelope

TO: Final = "MSMQ:MULTICAST="
"""What stands before the address and port in an envelope. [MQSRM 2.2.4.2]"""

HEADER_MAX_BYTES: Final = 4_096
_BOUNDARIES: Final = 100_000
_END: Final = b"\r\n\r\n"
_TYPE: Final = b"content-type"
_WHERE: Final = "a message of multicast"


def write_multicast(message: UserMessage, group: str) -> bytes:
    """Return a message as it goes to an address and port; nobody there sends receipts for it."""
    envelope = msgspec.structs.replace(
        envelope_of(message, ""), to=f"{TO}{group}", services=None, stream=None
    )
    properties = message.properties
    parts = Compound(
        write_envelope(envelope), properties.body[: properties.body_size], properties.extension
    )
    number = message.user.message_number % _BOUNDARIES
    kind, content = write_compound(parts, message.user.source, number)
    head = (
        f"POST {group} HTTP/1.1\r\nHost: {group}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(content)}\r\nSOAPAction: {SOAP_ACTION}\r\n"
        "Proxy-Accept: NonInteractiveClient\r\n\r\n"
    )
    return head.encode() + content


def read_multicast(payload: bytes) -> tuple[Envelope, Compound]:
    """Read what came to an address."""
    at = payload.find(_END, 0, HEADER_MAX_BYTES)
    if at < 0 or not payload.startswith(b"POST "):
        raise DecodeError(_WHERE, 0, "no header of a post")
    kind = ""
    for line in payload[:at].split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon and name.strip().lower() == _TYPE:
            kind = value.strip().decode("latin-1")
    parts = read_compound(kind, payload[at + len(_END) :])
    return read_envelope(parts.envelope), parts
