"""Who may do what by the console: each kind of caller in a browser, against a table by hand.

The table is not read from any rule: it is what the access lists and the scopes of tokens have to
come to. A page that is refused says so with the sentence of the queue manager, and status 403.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from starlette.routing import compile_path

from openmsmq import SINGLE_MESSAGE
from openmsmq.console.pages import PAGES
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import unix_user
from tests.console.people import Person, Place, opened_place, queue_path

GUARDED = r"private$\guarded"
OTHER = r"private$\other"
ELSEWHERE = r"DIRECT=TCP:127.0.0.99\private$\orders"
OUT = queue_path(ELSEWHERE).replace("/queues/", "/outgoing/")
FORM = {"form": "text", "priority": "3", "body": "x"}

KINDS = (
    "token to send",
    "token to receive",
    "token for some queues",
    "token of another user",
    "token of an administrator",
    "who has the link",
)
"""The columns of the table."""

DONE, DENIED, NOTHING = "y", "-", "0"
"""Done; refused; and nothing is there of what the caller may see."""


class Row(NamedTuple):
    """Something that people do, and what becomes of it for each kind of caller."""

    about: str
    outcomes: str
    act: Callable[[Person, Stage], httpx.Response]


class Stage:
    """What there is to be done something with, made anew for each attempt."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._victim = place.manager()

    def close(self) -> None:
        self._victim.close()

    def prepare(self) -> None:
        self._victim.close()
        self._victim = self.place.manager()
        (own,) = [one.number for one in self._victim.connections() if one.is_own]
        self.connection = f"/connections/{own}"
        with self.place.manager() as manager:
            for name in (GUARDED, OTHER):
                queue = manager.create_queue(name, transactional=True, exist_ok=True)
                if not queue.count():
                    queue.send("hello", label="hello", transaction=SINGLE_MESSAGE)
            letters = manager.queue("system$;deadxact")
            if not letters.count():
                doomed = manager.create_queue(r"private$\doomed", transactional=True, exist_ok=True)
                doomed.send("x", journal_on_failure=True, transaction=SINGLE_MESSAGE)
                doomed.purge()
            if not any(one.format_name.lower() == ELSEWHERE.lower() for one in manager.outgoing()):
                manager.queue(ELSEWHERE).send("x")
            if not manager.in_doubt():
                transaction = manager.begin()
                manager.queue(OTHER).send("in doubt", transaction=transaction)
                transaction.prepare()
            self.unit = manager.in_doubt()[0].unit_of_work.hex()
            found = manager.queue(GUARDED).peek(0)
            self.message = f"{queue_path(GUARDED)}/messages/{found.lookup_id}"
            self.other = f"{queue_path(OTHER)}/messages/{manager.queue(OTHER).peek(0).lookup_id}"
            self.letter = letters.peek(0)
            self.path = f"/path?id={found.message_id}"
        self.replay = (
            "/dead-letters/replay",
            f"?queue=system$;deadxact&reason=NACK_QUEUE_PURGED&destination={self.letter.destination}",
        )


def _looks(path: str) -> Callable[[Person, Stage], httpx.Response]:
    return lambda person, _: person.get(path)


def _messages(path: str) -> Callable[[Person, Stage], httpx.Response]:
    """A page of a queue is shown to who may see it; its messages only to who may look into it."""

    def look(person: Person, _: Stage) -> httpx.Response:
        page = person.get(path)
        if "MQ_ERROR_ACCESS_DENIED" in page.text:
            page.status_code = 403
        return page

    return look


def _found(page: httpx.Response) -> httpx.Response:
    """A message is looked for where somebody may look; elsewhere nothing is there of it."""
    if "Nothing was found of it" in page.text:
        page.status_code = 404
    return page


TABLE = [
    Row("overview", "yyyyyy", _looks("/")),
    Row("status", "yyyyyy", _looks("/status")),
    Row("queues", "yyyyyy", _looks("/queues")),
    Row("queue", "yyyyyy", _looks(queue_path(GUARDED))),
    Row("queue, other", "yy-yyy", _looks(queue_path(OTHER))),
    Row("messages", "-yy-yy", _messages(queue_path(GUARDED))),
    Row("rights", "--yyyy", _messages(f"{queue_path(GUARDED)}/properties")),
    Row("message", "-yy-yy", lambda person, it: person.get(it.message)),
    Row("message, other", "-y--yy", lambda person, it: person.get(it.other)),
    Row("body", "-yy-yy", lambda person, it: person.get(f"{it.message}/body")),
    Row("packet", "-yy-yy", lambda person, it: person.get(f"{it.message}/packet")),
    Row("export", "-yy-yy", _looks(f"{queue_path(GUARDED)}/export")),
    Row("send", "y-yyyy", lambda person, _: person.press(f"{queue_path(GUARDED)}/send", **FORM)),
    Row(
        "send, other", "y--yyy", lambda person, _: person.press(f"{queue_path(OTHER)}/send", **FORM)
    ),
    Row(
        "edit in place",
        "--y-yy",
        lambda person, it: person.press(f"{it.message}/edit", **FORM, to=GUARDED, take_out="yes"),
    ),
    Row("copy", "--y-yy", lambda person, it: person.press(f"{it.message}/copy", to=GUARDED)),
    Row("copy to other", "----yy", lambda person, it: person.press(f"{it.message}/copy", to=OTHER)),
    Row("move", "-yy-yy", lambda person, it: person.press(f"{it.message}/move", subqueue="s")),
    Row("delete", "-yy-yy", lambda person, it: person.press(f"{it.message}/delete")),
    Row("delete, other", "-y--yy", lambda person, it: person.press(f"{it.other}/delete")),
    Row(
        "purge",
        "-yy-yy",
        lambda person, _: person.press(f"{queue_path(GUARDED)}/purge", typed=GUARDED),
    ),
    Row("dead letters", "-y--yy", _looks("/dead-letters")),
    Row("replay", "----yy", lambda person, it: person.press(*it.replay, to=GUARDED)),
    Row("outgoing", "yyyyyy", _looks("/outgoing")),
    Row("outgoing, one", "yyyyyy", _looks(OUT)),
    Row("pause", "----yy", lambda person, _: person.press(f"{OUT}/pause")),
    Row("resume", "----yy", lambda person, _: person.press(f"{OUT}/resume")),
    Row("resend", "----yy", lambda person, _: person.press(f"{OUT}/resend")),
    Row("in doubt", "yyyyyy", _looks("/transactions")),
    Row("abort", "0000yy", lambda person, it: person.press(f"/transactions/{it.unit}/abort")),
    Row("commit", "0000yy", lambda person, it: person.press(f"/transactions/{it.unit}/commit")),
    Row("sessions", "yyyyyy", _looks("/sessions")),
    Row("sequences", "----yy", _looks("/sequences")),
    Row("audit", "----yy", _looks("/audit")),
    Row("configuration", "----yy", _looks("/configuration")),
    Row("rights, in words", "--yyyy", _looks(f"{queue_path(GUARDED)}/rights")),
    Row(
        "rights, changed",
        "--y-yy",
        lambda person, _: person.press(
            f"{queue_path(GUARDED)}/rights",
            **{"who": "user:70099", "action": "grant", "right-send": "yes"},
        ),
    ),
    Row("map", "yyyyyy", _looks("/map")),
    Row("path", "yyyyyy", _looks("/path")),
    Row("path, found", "0yy0yy", lambda person, it: _found(person.get(it.path))),
    Row("connections", "----yy", _looks("/connections")),
    Row("connection", "----yy", lambda person, it: person.get(it.connection)),
    Row("close", "----yy", lambda person, it: person.press(f"{it.connection}/close")),
    # Nobody has a session with this queue manager: only who may not ask is refused.
    Row("session", "000000", _looks("/sessions/1")),
]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, dict[str, Person]]]:
    folder: Path = tmp_path_factory.mktemp("rights")
    with opened_place(folder) as place:
        stage = Stage(place)
        stage.prepare()
        alice = unix_user(70_001)
        found = {
            "token to send": place.person(place.token(Scope.SEND)),
            "token to receive": place.person(place.token(Scope.RECEIVE)),
            "token for some queues": place.person(place.token(queues=(r"private$\guarded*",))),
            "token of another user": place.person(place.token(user=alice)),
            "token of an administrator": place.person(),
        }
        link = found["who has the link"] = Person(place.console)
        assert link.sign_in_by_link().status_code == 200
        assert tuple(found) == KINDS
        yield stage, found
        stage.close()


def outcome(answer: httpx.Response) -> str:
    if answer.status_code == 200:
        return DONE
    if answer.status_code == 404:
        return NOTHING
    assert answer.status_code == 403, answer.text
    assert re.search(r"MQ_ERROR_ACCESS_DENIED", answer.text), answer.text
    return DENIED


@pytest.mark.parametrize("row", TABLE, ids=[row.about for row in TABLE])
def test_every_kind_of_caller_can_do_what_the_table_says(
    people: tuple[Stage, dict[str, Person]], row: Row
) -> None:
    stage, found = people
    outcomes = ""
    for person in found.values():
        stage.prepare()
        outcomes += outcome(row.act(person, stage))
    assert outcomes == row.outcomes


def test_every_page_is_in_the_table(people: tuple[Stage, dict[str, Person]]) -> None:
    stage, found = people
    person = found["token of an administrator"]
    asked: set[tuple[str, str]] = set()

    def note(request: httpx.Request) -> None:
        asked.add((request.method, request.url.path))

    person.browser.event_hooks = {"request": [note]}
    for row in TABLE:
        stage.prepare()
        row.act(person, stage)
    person.browser.event_hooks = {}
    for page in PAGES:
        pattern, *_ = compile_path(page.path)
        methods = {method for method, path in asked if pattern.match(path)}
        wanted = {"GET"} if page.act is None else {"GET", "POST"}
        assert wanted <= methods, f"{page.path} is in no row"
