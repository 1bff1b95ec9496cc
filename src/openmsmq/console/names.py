r"""Names of queues and numbers of messages as parts of paths.

A name such as `private$\orders;journal` travels as base64url, so that no server, proxy or browser
takes a part of it for a step in a path. There is one way to write each name, and no other is read.
"""

from __future__ import annotations

import base64
import binascii

from openmsmq.console.limits import SEGMENT_MAX_CHARACTERS


class BadSegment(ValueError):
    """A part of a path that no page of ours has written."""


def segment(name: str) -> str:
    """Write a name as a part of a path."""
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def name_in(text: str) -> str:
    """Read a name from a part of a path, or raise `BadSegment`."""
    if not text or len(text) > SEGMENT_MAX_CHARACTERS:
        raise BadSegment("a part of the path is empty or too long")
    try:
        padded = text + "=" * (-len(text) % 4)
        name = base64.b64decode(padded.encode("ascii"), b"-_", validate=True).decode()
    except (UnicodeError, binascii.Error):
        raise BadSegment("a part of the path is no name") from None
    if segment(name) != text:
        raise BadSegment("a part of the path is no name")
    return name


def number_in(text: str) -> int:
    """Read the number of a message from a part of a path, or raise `BadSegment`."""
    # At most the digits of 64 bits: longer ones would cost time to read.
    if not (text.isascii() and text.isdecimal() and len(text) <= 20) or str(int(text)) != text:
        raise BadSegment("a part of the path is no number")
    number = int(text)
    if number >= 1 << 63:
        raise BadSegment("a part of the path is no number of a message")
    return number
