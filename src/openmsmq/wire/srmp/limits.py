"""Maxima of messages over HTTP; `openmsmq.model.limits` has all others, and one page shows both."""

from __future__ import annotations

from typing import Final

# Messages over HTTP.

ENVELOPE_MAX_BYTES: Final = 65_536
"""The SOAP envelope of a message, without its body. [ours]"""

ENVELOPE_DEPTH_MAX_COUNT: Final = 16
"""Elements within elements of an envelope; those we know need 5. [ours]"""

ENVELOPE_ELEMENTS_MAX_COUNT: Final = 256
"""Elements of an envelope; those we know are 60. [ours]"""

ENVELOPE_TAGS_MAX_COUNT: Final = 2 * ENVELOPE_ELEMENTS_MAX_COUNT
"""Beginnings and ends of elements, and comments: so many `<` an envelope may have. [ours]"""

ENVELOPE_ATTRIBUTES_MAX_COUNT: Final = 16
"""Attributes of one element of an envelope. [ours]"""

ENVELOPE_NAMESPACES_MAX_COUNT: Final = 64
"""Namespaces that an envelope may declare, counted as often as it does. [ours]"""

ENVELOPE_NAMESPACE_MAX_CHARACTERS: Final = 1_024
"""One namespace: each element in it is kept with it before its name. [ours]"""

ATTACHMENT_HEADER_MAX_BYTES: Final = 1_024
"""What stands before one part of a message in several parts. [ours]"""

POSTS_UNDER_WAY_MAX_COUNT: Final = 128
"""Messages to one queue that were posted and not answered yet. [ours]"""

POSTS_UNDER_WAY_PER_QUEUE_BYTES: Final = 8_388_608
"""What those messages may have, one message more allowed for. [ours]"""

POSTS_UNDER_WAY_BYTES: Final = 67_108_864
"""What all messages may have that were posted and not answered yet. [ours]"""

RECEIPTS_TOKEN_BYTES: Final = 16
"""The secret word in the URL for receipts of a stream, by which its sender knows them. [ours]"""
