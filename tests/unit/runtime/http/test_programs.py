"""The door for programs before a queue manager: which answers say what."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from openmsmq.client.steps import Steps
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import NIL_GUID
from openmsmq.runtime.http.answers import Answer
from openmsmq.runtime.http.clerks import Clerks
from openmsmq.runtime.http.conversation import Head, Request
from openmsmq.runtime.http.programs import MULTICAST_NOTE, Programs
from openmsmq.runtime.http.routes import Visitor, place_of
from openmsmq.security.access.callers import UNLIMITED
from tests.unit.manager.office import Office

QUEUE = "/queues/private$/orders/messages"
TICKER = "/queues/MULTICAST=234.1.1.1:8001/messages"


class Counter:
    """Asks a queue manager in memory, and has every answer at once."""

    def __init__(self) -> None:
        self.office = Office()
        self.opened: dict[str, Any] = {}
        manager = self.office.driver.manager
        manager.multicast_problem("", self.office.driver.now)

    def of(self, *_: object) -> Counter:
        return self

    def run(self, steps: Steps[Any], done: Callable[[Any], None]) -> None:
        reply = None
        try:
            while True:
                request = steps.send(reply)
                assert not isinstance(request, int)
                reply = self.office.ask(request)
        except StopIteration as end:
            done(end.value)
        except MsmqError as error:
            done(error)


@pytest.fixture
def counter() -> Counter:
    return Counter()


def ask(counter: Counter, method: str, path: str, **headers: str) -> tuple[Answer, dict[str, Any]]:
    """Make a request; gives its answer, and what that says."""
    given = {name.replace("_", "-").lower(): text for name, text in headers.items()}
    given |= {"host": "localhost", "content-type": "text/plain"}
    programs = Programs(
        ("ALPHA", NIL_GUID), lambda *_: UNLIMITED, cast("Clerks", counter), lambda *_: None
    )
    head = Head(1, method, path, given, 5)
    place, visitor = place_of(head), Visitor("127.0.0.1:1", "127.0.0.1")
    assert place is not None
    refused = programs.judge(head, place, visitor)
    if refused is not None:
        return refused, json.loads(refused.body)
    answers: list[Answer] = []
    programs.take(Request(head, b"price"), place, visitor, answers.append)
    (answer,) = answers
    return answer, json.loads(answer.body)


def test_201_says_that_a_message_is_in_a_queue(counter: Counter) -> None:
    answer, content = ask(counter, "POST", QUEUE)
    assert answer.status == 201
    assert "note" not in content


def test_what_goes_to_a_multicast_address_is_accepted_and_no_more(counter: Counter) -> None:
    answer, content = ask(counter, "POST", TICKER)
    assert (answer.status, content["note"]) == (202, MULTICAST_NOTE)
    assert content["queue"] == "MULTICAST=234.1.1.1:8001"


def test_that_it_was_sent_once_is_known_all_the_same(counter: Counter) -> None:
    first, content = ask(counter, "POST", TICKER, Idempotency_Key="monday")
    again, repeated = ask(counter, "POST", TICKER, Idempotency_Key="monday")
    assert (first.status, again.status) == (202, 202)
    assert repeated == content
    assert dict(again.headers)["Idempotent-Replayed"] == "true"
    voucher, shown = ask(counter, "GET", "/vouchers/monday")
    assert (voucher.status, shown["message_id"]) == (200, content["message_id"])


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        ("POST", "/queues/private$/missing/messages", "Create it first"),
        ("POST", "/queues/private$/orders;journal/messages", "takes no messages from applications"),
        ("GET", "/vouchers/tuesday", "none was sent"),
    ],
)
def test_a_failure_says_what_is_wrong_where_and_what_to_do(
    counter: Counter, method: str, path: str, what: str
) -> None:
    _, content = ask(counter, method, path)
    sentence = content["detail"]
    assert what in sentence
    assert sentence.endswith(".")
    assert content["code"] not in sentence
