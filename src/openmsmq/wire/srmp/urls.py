r"""Queues as URLs: `http://host/msmq/private$/orders`, and as the names of packets. [MQSRM 2.2.4.2]

In a packet the name is a direct one and may be spelt in any way; in an envelope its scheme is in
lower case. Other names stand in envelopes behind `MSMQ:`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote

from openmsmq.model.identity import Guid
from openmsmq.model.names import (
    DirectFormatName,
    IllegalName,
    PrivateFormatName,
    PublicFormatName,
    parse_format_name,
)
from openmsmq.model.names.parts import fold
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnSource,
    PublicName,
    QueueName,
    describe,
)

_SCHEMES: Final = ("http://", "https://")
_OTHERWISE: Final = "MSMQ:"
_DIRECT: Final = "DIRECT="
_ORDER_QUEUE: Final = "/private$/order_queue$"
_UNQUOTED: Final = "/:$;@&=+,!*'()~-._[]\\"


def is_url(text: str) -> bool:
    """Whether a name is a URL of HTTP or HTTPS."""
    return text[:8].lower().startswith(_SCHEMES)


def url_of(name: QueueName) -> str:
    """Return the URL of a direct name that has one; empty for any other name."""
    if not isinstance(name, DirectName) or not is_url(name.text):
        return ""
    scheme, colon, rest = name.text.partition(":")
    return f"{scheme.lower()}{colon}{rest}"


@lru_cache(maxsize=256)
def sent_url(url: str) -> str:
    """Return a URL as a request has it: what stands behind its `?` is left as it is."""
    path, mark, query = url.partition("?")
    return quote(path, safe=_UNQUOTED) + mark + quote(query, safe=_UNQUOTED + "%?")


def host_of(url: str) -> str:
    """Return the host of a URL in lower case, without port and brackets; empty if it has none."""
    host = url.partition("//")[2].replace("\\", "/").partition("/")[0].lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def is_same_place(url: str, target: str) -> bool:
    """Whether a URL has the path of a request, whatever its host and its query are."""
    path = url.partition("://")[2].partition("/")[2].partition("?")[0]
    asked = unquote(target.partition("?")[0])
    return bool(path) and fold(f"/{path}".replace("\\", "/")) == fold(asked.replace("\\", "/"))


def names_order_queue(text: str) -> bool:
    """Whether a URL, or a path, is that of a queue for receipts of streams."""
    return fold(text.partition("?")[0].replace("\\", "/")).endswith(_ORDER_QUEUE)


def query_of(target: str) -> str:
    """Return what stands behind the `?` of a target; empty if there is none."""
    return target.partition("?")[2]


def text_of(name: QueueName, source: Guid) -> str:
    """Return a name as envelopes have it; empty for none. `source` is who sends the message."""
    url = url_of(name)
    if url or name is None:
        return url
    if isinstance(name, PrivateOnSource):
        name = PrivateName(source, name.number)
    if not isinstance(name, DirectName | PublicName | PrivateName):
        return ""
    return f"{_OTHERWISE}{describe(name)}"


def name_of(text: str) -> DirectName | PublicName | PrivateName | None:
    """Read a name of an envelope as packets have it; None for none, or one that says nothing."""
    if is_url(text):
        return DirectName(text)
    if not text.startswith(_OTHERWISE):
        return None
    try:
        found = parse_format_name(text[len(_OTHERWISE) :])
    except IllegalName:
        return None
    match found:
        case DirectFormatName():
            return DirectName(text[len(_OTHERWISE + _DIRECT) :])
        case PublicFormatName():
            return PublicName(found.queue)
        case PrivateFormatName():
            return PrivateName(found.queue_manager, found.number)
        case _:
            return None
