"""The trace context of a message: which span of OpenTelemetry its sender was in (decision 0044).

It stands in the extension, as two headers of the list that NServiceBus has there: `traceparent` and
`tracestate`, as W3C Trace Context defines them. Queue managers pass it on like every extension, and
whoever sends a message may write there what he likes. So it is only looked for in the first bytes,
by a pattern that cannot run away, and what is not exactly a context is none. Nothing here raises.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

EXTENSION_LOOKED_AT_MAX_BYTES: Final = 16 * 1024
"""How far into an extension a context is looked for. [ours]"""

TRACESTATE_MAX_CHARACTERS: Final = 512
"""A longer `tracestate` is left out; W3C asks for so much to be passed on at least. [ours]"""

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_LIST: Final = b"<ArrayOfHeaderInfo"
_LIST_WITHIN_BYTES: Final = 256
_SPACE: Final = rb"[ \t\r\n]{0,32}"
_PARENT: Final = re.compile(
    rb"<Key>traceparent</Key>"
    + _SPACE
    + rb"<Value>([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})</Value>"
)
_STATE: Final = re.compile(
    rb"<Key>tracestate</Key>"
    + _SPACE
    + rb"<Value>([\x20-\x3b\x3d\x3f-\x7e]{1,%d})</Value>" % TRACESTATE_MAX_CHARACTERS
)
_NO_VERSION: Final = b"ff"
_NO_TRACE: Final = b"0" * 32
_NO_SPAN: Final = b"0" * 16
_SAMPLED: Final = 0x01
_ESCAPES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))


class TraceContext(msgspec.Struct, frozen=True, gc=False):
    """A context as a message has it, by the word of its sender alone."""

    traceparent: str
    tracestate: str = ""

    @property
    def is_sampled(self) -> bool:
        """Whether the sender records the trace."""
        return bool(int(self.traceparent[-2:], 16) & _SAMPLED)

    @property
    def headers(self) -> dict[str, str]:
        """The headers in which it travels."""
        found = {TRACEPARENT: self.traceparent}
        if self.tracestate:
            found[TRACESTATE] = self.tracestate
        return found


def trace_context_in(extension: bytes) -> TraceContext | None:
    """Return the context that an extension carries; None if there is none, or one that is wrong."""
    if _LIST not in extension[:_LIST_WITHIN_BYTES]:
        return None
    looked_at = extension[:EXTENSION_LOOKED_AT_MAX_BYTES]
    found = _PARENT.search(looked_at)
    if found is None:
        return None
    version, trace, span, flags = found.groups()
    if version == _NO_VERSION or trace == _NO_TRACE or span == _NO_SPAN:
        return None
    parent = b"-".join((version, trace, span, flags)).decode("ascii")
    state = _STATE.search(looked_at)
    return TraceContext(parent, "" if state is None else _plain(state[1].decode("ascii")))


def _plain(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return text
