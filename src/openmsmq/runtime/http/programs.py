"""The door for programs: a POST is a message in a queue, and with a key it is one only.

Whoever sends shows a token or a certificate each time: a name that the kernel vouches for is not
enough here, because a web page in somebody's browser would have it, too. Requests that a browser
makes for a page of another site are refused, and none is told that it may read answers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from openmsmq.api import messages as api
from openmsmq.client.errors import ConnectionLost
from openmsmq.client.formatters.active_x import ActiveXFormatter
from openmsmq.client.formatters.base import FormatterError
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.client.steps import Steps, ask
from openmsmq.model import errors
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.names import MulticastFormatName, parse_format_name
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.runtime.http.answers import Answer, json_answer, problem
from openmsmq.runtime.http.clerks import Clerk, Clerks
from openmsmq.runtime.http.heads import Head, Request
from openmsmq.runtime.http.openapi import description
from openmsmq.runtime.http.routes import Give, Place, Visitor, body_problem, method_problem
from openmsmq.runtime.http.wishes import BadWish, Wishes, read_wishes
from openmsmq.security.access.callers import Caller

QUEUES: Final = "queues"
MESSAGES: Final = "messages"
VOUCHERS: Final = "vouchers"
DESCRIPTION: Final = "/openapi.json"

REPEATED: Final = ("Idempotent-Replayed", "true")
_CHALLENGE: Final = ("WWW-Authenticate", "Bearer")
_NO_TOKEN: Final = (
    "the token is missing: send the header Authorization: Bearer TOKEN, with one that "
    "openmsmq token create has made"
)
_WRONG_TOKEN: Final = (
    "the token is wrong: this queue manager does not know it, it was revoked, or its time is up; "
    "openmsmq token create makes another"
)
_RETRY: Final = ("Retry-After", "5")
MULTICAST_NOTE: Final = (
    "It goes to whoever listens at this address; it is kept nowhere, and nobody says who got it."
)
_SAME_SITE: Final = frozenset({"same-origin", "none"})

_STATUSES: Final[dict[type[MsmqError], int]] = {
    errors.AccessDenied: 403,
    errors.QueueNotFound: 404,
    errors.QueueDeleted: 404,
    errors.MessageNotFound: 404,
    errors.PropertiesConflict: 422,
    errors.SharingViolation: 409,
    errors.InsufficientResources: 503,
    errors.ServiceNotAvailable: 503,
    errors.MessageStorageFailed: 503,
    errors.QueueNotAvailable: 503,
    errors.DirectoryFailed: 503,
    errors.NoDirectory: 503,
    errors.OperationCancelled: 503,
}
"""What failures are answered with; all others are mistakes of who sends."""

Admit = Callable[[str, bytes], Caller]
"""Says who shows a token or a certificate, or raises `AccessDenied`."""


class _Opened(msgspec.Struct, frozen=True):
    """A queue that is open for sending."""

    handle: int
    builder: PacketBuilder
    transactional: bool
    is_multicast: bool


class _Sent(msgspec.Struct, frozen=True):
    """What was sent, and where it went."""

    voucher: api.Voucher
    to: _Opened


class Programs:
    """Takes messages from programs, and tells them of their vouchers."""

    def __init__(
        self,
        manager: tuple[str, Guid],
        admit: Admit,
        clerks: Clerks,
        denied: Callable[[str, str], None],
    ) -> None:
        """`manager` is the name and the identity of the queue manager; `denied` hears of a peer
        that was not let in, and why."""
        self._name, self._identifier = manager
        self._admit = admit
        self._clerks = clerks
        self._denied = denied
        self._formatter = ActiveXFormatter()

    def covers(self, place: Place) -> bool:
        """Whether the path is about a queue, a voucher, or this door."""
        first = place.path.split("/", 2)[1] if "/" in place.path else ""
        return first in (QUEUES, VOUCHERS) or place.path == DESCRIPTION

    # By the head.

    def judge(self, head: Head, place: Place, visitor: Visitor) -> Answer | None:
        """Refuse who may not come in, and what is no request of this door."""
        if "origin" in head.headers or head.headers.get("sec-fetch-site", "none") not in _SAME_SITE:
            return problem(
                HTTPStatus.FORBIDDEN,
                "this door is for programs, and not for pages in browsers: leave Origin out",
            )
        if place.path == DESCRIPTION:
            return method_problem(head, "GET", "HEAD")
        caller = self._caller(head, visitor)
        if isinstance(caller, Answer):
            return caller
        if queue_in(place) is not None:
            return method_problem(head, "POST") or body_problem(head)
        if key_in(place) is not None:
            return method_problem(head, "GET", "HEAD")
        return problem(
            HTTPStatus.NOT_FOUND,
            "send to /queues/QUEUE/messages, such as /queues/private$/orders/messages, and ask for "
            "/vouchers/KEY",
        )

    def _caller(self, head: Head, visitor: Visitor) -> Caller | Answer:
        scheme, _, token = head.headers.get("authorization", "").partition(" ")
        if scheme and scheme.lower() != "bearer":
            return self._not_known(
                visitor, f"Authorization: {scheme[:20]} is not known here: use Bearer and a token"
            )
        token = token.strip()
        try:
            return self._admit(token, visitor.certificate)
        except errors.AccessDenied as denied:
            advice = _WRONG_TOKEN if token else denied.detail if visitor.certificate else _NO_TOKEN
            return self._not_known(visitor, denied.detail, advice)

    def _not_known(self, visitor: Visitor, reason: str, advice: str = "") -> Answer:
        """Refuse somebody: the audit log has the reason, and the answer what to do here."""
        self._denied(visitor.peer, reason)
        code = errors.AccessDenied().name
        return problem(HTTPStatus.UNAUTHORIZED, advice or reason, code, _CHALLENGE)

    # As a whole.

    def take(
        self, request: Request, place: Place, visitor: Visitor, give: Give
    ) -> Callable[[], None]:
        """Carry a request out."""
        if place.path == DESCRIPTION:
            give(json_answer(HTTPStatus.OK, description(self._name)))
            return _nothing
        # Again: the token may have been revoked while the body came.
        caller = self._caller(request.head, visitor)
        if isinstance(caller, Answer):
            give(caller)
            return _nothing
        clerk = self._clerks.of(caller, visitor.peer)
        queue, key = queue_in(place), key_in(place)
        if queue is None:
            asked = key or ""
            clerk.run(ask(api.GetVoucher(asked)), lambda found: give(self._voucher(found, asked)))
            return _nothing
        try:
            wishes = read_wishes(request, queue.lower())
        except BadWish as bad:
            give(problem(bad.status, str(bad)))
            return _nothing
        clerk.run(
            self._sending(clerk, queue, wishes), lambda found: give(self._sent(found, wishes.key))
        )
        # What was asked for is done, whether or not somebody hears of it.
        return _nothing

    def _sending(self, clerk: Clerk, queue: str, wishes: Wishes) -> Steps[_Sent]:
        opened: _Opened | None = clerk.opened.get(queue)
        if opened is not None:
            try:
                return (yield from self._send(opened, queue, wishes))
            except (errors.QueueDeleted, errors.InvalidHandle):
                # There may be another one of that name by now.
                clerk.opened.pop(queue, None)
        opened = yield from self._opening(clerk, queue)
        return (yield from self._send(opened, queue, wishes))

    def _opening(self, clerk: Clerk, queue: str) -> Steps[_Opened]:
        found = yield from ask(api.OpenQueue(queue, AccessMode.SEND, ShareMode.DENY_NONE))
        builder = PacketBuilder(found.direct_name, self._name, found.format_name, Guid(found.owner))
        is_multicast = isinstance(parse_format_name(found.format_name), MulticastFormatName)
        opened = _Opened(found.handle, builder, found.transactional, is_multicast)
        clerk.opened[queue] = opened
        return opened

    def _send(self, opened: _Opened, queue: str, wishes: Wishes) -> Steps[_Sent]:
        inside = opened.transactional if wishes.transactional is None else wishes.transactional
        message = OutgoingMessage(body=wishes.body, **wishes.options)
        packet = opened.builder.build(message, self._formatter, inside)
        transaction = api.OWN_TRANSACTION if inside else 0
        if wishes.key:
            once = api.SendOnce(opened.handle, packet, wishes.key, wishes.digest, transaction)
            return _Sent((yield from ask(once)), opened)
        sent = yield from ask(api.Send(opened.handle, [packet], transaction))
        return _Sent(api.Voucher(sent.numbers[0], sent.sent_time_s, queue, 0), opened)

    def _sent(self, found: Any, key: str) -> Answer:
        """Return the answer to who has sent: the message is in a queue, or on its way to many."""
        if not isinstance(found, _Sent):
            return failure_answer(found)
        voucher = found.voucher
        content = self._content(voucher, key)
        headers: list[tuple[str, str]] = []
        if key:
            headers.append(("Location", f"/{VOUCHERS}/{quote(key, safe='')}"))
        if voucher.before:
            headers.append(REPEATED)
        if found.to.is_multicast:
            content["note"] = MULTICAST_NOTE
            return json_answer(HTTPStatus.ACCEPTED, content, *headers)
        return json_answer(HTTPStatus.CREATED, content, *headers)

    def _voucher(self, found: Any, key: str) -> Answer:
        if not isinstance(found, api.Voucher):
            return failure_answer(found)
        return json_answer(HTTPStatus.OK, self._content(found, key))

    def _content(self, voucher: api.Voucher, key: str) -> dict[str, Any]:
        content: dict[str, Any] = {
            "message_id": str(MessageId(self._identifier, voucher.number)),
            "queue": voucher.queue,
            "sent_time": _time(voucher.sent_time_s),
        }
        if key:
            content["key"] = key
            content["key_until"] = _time(voucher.until_s)
        return content


def failure_answer(error: object) -> Answer:
    """Return what is answered if the queue manager refuses."""
    if isinstance(error, MsmqError):
        status = _STATUSES.get(type(error), 400)
        headers = (_RETRY,) if status == HTTPStatus.SERVICE_UNAVAILABLE else ()
        return problem(status, error.sentence, error.name, *headers)
    if isinstance(error, FormatterError):
        return problem(HTTPStatus.BAD_REQUEST, str(error))
    assert isinstance(error, ConnectionLost), error
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error), "", _RETRY)


def queue_in(place: Place) -> str | None:
    r"""Return the queue that a path names, `private$\orders` of `/queues/private$/orders/messages`.

    Parts of the name are separated by `/` or by `\`; a slash in a name is written `%2F`.
    """
    parts = place.raw_path.split("/")
    if len(parts) < 4 or parts[1] != QUEUES or parts[-1] != MESSAGES:
        return None
    name = "\\".join(map(unquote, parts[2:-1]))
    return name if name and all(parts[2:-1]) else None


def key_in(place: Place) -> str | None:
    """Return the key that a path names."""
    parts = place.raw_path.split("/")
    if len(parts) != 3 or parts[1] != VOUCHERS or not parts[2]:
        return None
    return unquote(parts[2])


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _nothing() -> None:
    """Nothing is to be called off."""
