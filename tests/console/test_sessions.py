"""Signing in, staying signed in, and out: by a token, by the link of the start, and by no trick."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from openmsmq.console import limits
from openmsmq.runtime.api import server as api_server
from openmsmq.runtime.api.tokens import revoke_token
from openmsmq.security.access.callers import Scope
from tests.console.people import Person, Place, forms, opened_place, queue_path, text_of


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place of its own for each test: sessions, attempts and the link are used up."""
    with opened_place(tmp_path) as found:
        yield found


def cookie_of(answer: httpx.Response) -> str:
    return answer.headers["set-cookie"]


def test_without_a_session_every_page_leads_to_the_sign_in(place: Place) -> None:
    person = Person(place.console)
    for path in ("/", "/queues", "/queues/cHJpdmF0ZSRcYQ", "/dead-letters", "/status"):
        answer = person.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


def test_a_token_signs_in_as_who_it_is_for(place: Place) -> None:
    person = place.person(place.token(Scope.SEND))
    assert "token-1" in text_of(person.get("/status"))
    assert "Token is good for send" in text_of(person.get("/status"))


@pytest.mark.parametrize("token", ["", "   ", "openmsmq_nonsense", "x" * 2000])
def test_what_is_no_token_does_not_come_in_though_the_process_itself_would(
    place: Place, token: str
) -> None:
    person = Person(place.console)
    page = person.sign_in(token)
    assert page.status_code in (400, 403)
    assert person.get("/").status_code == 303


def test_the_cookie_says_nothing_and_is_for_this_site_and_no_script(place: Place) -> None:
    person = Person(place.console)
    before = forms(person.get("/sign-in")).hidden
    visitor = person.browser.cookies["openmsmq-console"]
    token = place.token()
    answer = person.send("/sign-in", {**before, "token": token})
    said = cookie_of(answer)
    assert "HttpOnly" in said
    assert "SameSite=strict" in said
    assert "Path=/" in said
    session = person.browser.cookies["openmsmq-console"]
    assert token not in said
    # Who knows the cookie of a visitor, because he has set it, does not know that of the session.
    assert session != visitor
    assert len(session) >= 43


def test_the_link_works_once_and_only_by_a_press_of_the_button(place: Place) -> None:
    link = place.console.server.link
    person, other = Person(place.console), Person(place.console)
    path = link.removeprefix(place.console.address)
    # A program that looks at links before people do uses nothing up.
    assert other.get(path).status_code == 200
    assert other.get(path).status_code == 200
    assert person.sign_in_by_link().status_code == 200
    assert "Signed in as" in person.get("/").text
    late = other.get(path)
    assert late.status_code == 410
    assert other.send("/sign-in", {**forms(late).hidden, "link": path[9:]}).status_code == 410
    assert other.get("/").status_code == 303


def test_the_link_is_no_good_after_a_while(place: Place) -> None:
    path = place.console.server.link.removeprefix(place.console.address)
    place.console.clock.now_s += limits.LINK_MAX_S
    assert Person(place.console).get(path).status_code == 410


def test_a_link_that_let_nobody_in_is_not_used_up(place: Place) -> None:
    link = place.console.server.console.book.link
    place.server.stop()
    assert Person(place.console).sign_in_by_link().status_code == 503
    assert place.console.server.console.book.link == link


def test_a_session_ends_when_nobody_has_done_anything(place: Place) -> None:
    person = place.person()
    place.console.clock.now_s += limits.SESSION_IDLE_MAX_S - 1
    assert person.get("/").status_code == 200
    place.console.clock.now_s += limits.SESSION_IDLE_MAX_S - 1
    assert person.get("/").status_code == 200
    place.console.clock.now_s += limits.SESSION_IDLE_MAX_S
    assert person.get("/").status_code == 303


def test_a_page_that_refreshes_itself_keeps_nobody_signed_in(place: Place) -> None:
    person = place.person()
    for _ in range(4):
        place.console.clock.now_s += limits.SESSION_IDLE_MAX_S / 4
        answer = person.get("/", headers={"X-Live": "1"})
    assert answer.status_code == 401
    assert person.get("/").status_code == 303


def test_a_session_ends_in_the_end_whatever_is_done(place: Place) -> None:
    person = place.person()
    for _ in range(limits.SESSION_MAX_S // limits.SESSION_IDLE_MAX_S * 2 - 1):
        place.console.clock.now_s += limits.SESSION_IDLE_MAX_S / 2
        assert person.get("/health/live").status_code == 200
        answer = person.get("/status")
    assert answer.status_code == 200
    place.console.clock.now_s += limits.SESSION_IDLE_MAX_S / 2
    assert person.get("/status").status_code == 303


def test_signing_out_ends_the_session_and_not_only_the_cookie(place: Place) -> None:
    person = place.person()
    cookie = person.browser.cookies["openmsmq-console"]
    assert person.send("/sign-out", {"form_token": person.form_token}).status_code == 303
    person.browser.cookies.set("openmsmq-console", cookie)
    assert person.get("/").status_code == 303


def test_what_was_begun_before_signing_out_is_not_done_after_it(place: Place) -> None:
    person = place.person()
    with place.manager() as manager:
        manager.create_queue(r"private$\q")
        queue = manager.queue(r"private$\q")
        fields = {"form_token": person.form_token, "form": "text", "priority": "3"}
        cookie = person.browser.cookies["openmsmq-console"]
        open_count = len(manager.connections())
        with begun_form(place, f"{queue_path(queue.name)}/send", cookie, fields) as (plain, rest):
            assert person.send("/sign-out", {"form_token": fields["form_token"]}).is_redirect
            plain.sendall(rest)
            assert plain.recv(1000).split()[1] == b"401"
        assert queue.count() == 0
        # Nothing of the session is left behind at the queue manager.
        assert len(manager.connections()) < open_count


@contextlib.contextmanager
def begun_form(
    place: Place, path: str, cookie: str, fields: dict[str, str]
) -> Iterator[tuple[socket.socket, bytes]]:
    """Send a form but for its last byte; gives the connection, and that byte."""
    form = urlencode(fields).encode()
    address = place.console.address
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address.removeprefix('http://')}\r\nOrigin: {address}\r\n"
        f"Cookie: openmsmq-console={cookie}\r\nContent-Length: {len(form)}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nExpect: 100-continue\r\n\r\n"
    )
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as plain:
        plain.sendall(head.encode())
        # Told to go on, we know that the session was found, and that its form is being read.
        assert plain.recv(1000).startswith(b"HTTP/1.1 100")
        plain.sendall(form[:-1])
        yield plain, form[-1:]


def test_a_token_that_is_revoked_is_no_good_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "TOKENS_LOOK_MS", 50)
    with opened_place(tmp_path) as place:
        person = place.person(place.token())
        assert person.get("/").status_code == 200
        revoke_token(place.folder / "tokens.json", "token-1")
        codes = (person.get("/").status_code for _ in range(1000))
        assert next(code for code in codes if code != 200) in (403, 503)


def test_who_tries_too_often_has_to_wait(place: Place) -> None:
    person = Person(place.console)
    codes = [
        person.sign_in(f"openmsmq_{n}").status_code for n in range(limits.ATTEMPTS_BURST_COUNT)
    ]
    assert set(codes) == {403}
    refused = person.sign_in(place.token())
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) <= limits.ATTEMPT_PAUSE_S
    place.console.clock.now_s += limits.ATTEMPT_PAUSE_S
    assert person.sign_in(place.token()).status_code == 200


ATTEMPTS_OF_ANOTHER = r"""
import http.client, os, re, sys, urllib.parse
address, count = sys.argv[1], int(sys.argv[2])
browser = http.client.HTTPConnection(address)
browser.request("GET", "/sign-in")
browser.getresponse().read()
# Everything that is needed was imported by now, from where others may not read.
browser.close()
os.setuid(65_534)
browser.request("GET", "/sign-in")
page = browser.getresponse()
cookie = page.headers["set-cookie"].partition(";")[0]
shown = re.search(r'name="form_token" value="([^"]*)"', page.read().decode())[1]
headers = {"Cookie": cookie, "Origin": f"http://{address}"}
headers["Content-Type"] = "application/x-www-form-urlencoded"
for number in range(count):
    form = urllib.parse.urlencode({"form_token": shown, "token": f"openmsmq_{number}"})
    browser.request("POST", "/sign-in", form, headers)
    answer = browser.getresponse()
    answer.read()
    print(answer.status)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a moment")
def test_one_user_of_this_computer_does_not_keep_another_from_signing_in(place: Place) -> None:
    address = place.console.address.removeprefix("http://")
    count = limits.ATTEMPTS_ALL_BURST_COUNT + 1
    tried = subprocess.run(
        [sys.executable, "-I", "-c", ATTEMPTS_OF_ANOTHER, address, str(count)],
        capture_output=True,
        text=True,
        check=True,
    )
    codes = tried.stdout.split()
    assert codes[0] == "403"
    assert codes.count("429") == count - limits.ATTEMPTS_BURST_COUNT
    assert Person(place.console).sign_in(place.token()).status_code == 200


def test_of_one_identity_the_oldest_session_gives_way(place: Place) -> None:
    token = place.token()
    people = []
    for _ in range(limits.SESSIONS_OF_ONE_MAX_COUNT + 1):
        place.console.clock.now_s += limits.ATTEMPT_PAUSE_S
        people.append(place.person(token))
    assert people[0].get("/").status_code == 303
    assert people[1].get("/").status_code == 200
    assert len(place.console.server.console.book) == limits.SESSIONS_OF_ONE_MAX_COUNT


def test_the_queue_manager_that_is_gone_is_an_answer_and_no_traceback(place: Place) -> None:
    person = place.person()
    place.server.stop()
    page = person.get("/")
    assert page.status_code == 503
    assert "does not answer" in text_of(page)
    assert person.get("/health/live").text == "ok\n"
    assert person.get("/health/ready").status_code == 503


def test_who_is_not_signed_in_hears_whether_the_queue_manager_is_ready(place: Place) -> None:
    answer = Person(place.console).get("/health/ready")
    assert (answer.status_code, answer.text) == (200, "ready\n")
