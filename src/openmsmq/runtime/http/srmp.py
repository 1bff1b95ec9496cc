"""URLs of queues: posts of SRMP, handed to the queue manager, and answered when it says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from openmsmq.model.names.urls import UrlMap
from openmsmq.protocol.posts import PASSED_ON, PostAnswer, ReceivedPost
from openmsmq.runtime.http.answers import Answer, problem
from openmsmq.runtime.http.heads import Head, Request
from openmsmq.runtime.http.routes import Give, Place, Visitor, body_problem, method_problem
from openmsmq.runtime.limits import HTTP_KNOWN_PLACE_MAX_CHARACTERS, HTTP_KNOWN_PLACES_MAX_COUNT

if TYPE_CHECKING:
    from openmsmq.runtime.server import Pump

_ACTION: Final = "msmqmessage"
_FOLDER: Final = "/msmq/"


class SrmpPosts:
    """Takes posts for queues that have URLs."""

    def __init__(self, pump: Pump, urls: UrlMap) -> None:
        self._pump = pump
        self._queue_at = lru_cache(maxsize=HTTP_KNOWN_PLACES_MAX_COUNT)(urls.queue)
        self._last_number = 0
        self._waiting: dict[int, Give] = {}

    def covers(self, place: Place) -> bool:
        """Whether the path stands for a queue that may be used so, or looks as if it did."""
        return place.path[: len(_FOLDER)].lower() == _FOLDER or self._queue(place) is not None

    def judge(self, head: Head, place: Place, visitor: Visitor) -> Answer | None:  # noqa: ARG002
        """Refuse what is no post of SRMP; the queue manager judges what is in it.

        A queue that has no URL is answered like one that is not there: its sender need not try
        again. [MQSRM 3.1.5.1.3]
        """
        refusal = method_problem(head, "POST") or body_problem(head)
        if refusal is None and head.headers.get("soapaction", "").strip('"').lower() != _ACTION:
            refusal = problem(
                HTTPStatus.BAD_REQUEST, 'this URL is for SRMP: say SOAPAction: "MSMQMessage"'
            )
        if refusal is None and self._queue(place) is None:
            refusal = problem(HTTPStatus.BAD_REQUEST, "no queue has this URL")
        return refusal

    def take(
        self, request: Request, place: Place, visitor: Visitor, give: Give
    ) -> Callable[[], None]:
        """Hand a post in; the queue manager answers when its turn is durable."""
        refusal = self._pump.refusal
        if refusal is not None:
            give(problem(HTTPStatus.SERVICE_UNAVAILABLE, refusal.detail))
            return lambda: None
        self._last_number += 1
        number = self._last_number
        self._waiting[number] = give
        head = request.head
        post = ReceivedPost(
            number,
            self._queue(place) or "",
            head.target,
            place.host,
            {name: value for name, value in head.headers.items() if name in PASSED_ON},
            request.body,
            visitor.address,
            visitor.is_secure,
            visitor.certificate,
        )
        self._pump.posted(post)
        return lambda: self._forget(number)

    def answer(self, answer: PostAnswer) -> None:
        """Answer a post, if somebody still waits."""
        give = self._waiting.pop(answer.number, None)
        if give is not None:
            headers = (("Content-Type", answer.content_type),) if answer.content_type else ()
            give(Answer(answer.status, headers, answer.body))

    def _queue(self, place: Place) -> str | None:
        """Return the queue that a path stands for, if it has one."""
        is_long = len(place.path) > HTTP_KNOWN_PLACE_MAX_CHARACTERS
        return None if is_long else self._queue_at(place.path)

    def _forget(self, number: int) -> None:
        self._waiting.pop(number, None)
