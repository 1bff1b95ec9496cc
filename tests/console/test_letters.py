"""Dead letters: sorted by reason, shown before they are sent, and replayed once."""

from __future__ import annotations

import gc
import re
import subprocess
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

import openmsmq
from openmsmq import SINGLE_MESSAGE
from openmsmq.console import limits
from openmsmq.console.asking import letters
from openmsmq.model.message import MessageClass
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import unix_user
from tests.cli.conftest import command_line, environment
from tests.cli.test_console import read_links
from tests.console.people import Person, Place, forms, opened_place, text_of

DEAD = "system$;deadletter"
DEADXACT = "system$;deadxact"


def kill(manager: openmsmq.QueueManager, queue: str, *bodies: object, **options: object) -> None:
    """Make dead letters: what is purged from a queue before it was received."""
    target = manager.queue(queue)
    transaction = SINGLE_MESSAGE if target.properties().transactional else None
    for body in bodies:
        target.send(body, journal_on_failure=True, transaction=transaction, **options)
    target.purge()


def replay_links(person: Person) -> list[str]:
    page = person.get("/dead-letters").text
    return [
        link.replace("&amp;", "&")
        for link in re.findall(r'href="(/dead-letters/replay\?[^"]+)"', page)
    ]


def run(person: Person, link: str, **fields: str) -> str:
    path, _, query = link.partition("?")
    return text_of(person.press(path, f"?{query}", **fields))


def test_letters_are_sorted_by_reason_and_destination(tmp_path: Path) -> None:
    with opened_place(tmp_path) as place, place.manager() as manager:
        for name in ("a", "b"):
            manager.create_queue(rf"private$\{name}", transactional=True)
        kill(manager, r"private$\a", *range(3))
        kill(manager, r"private$\b", "x")
        person = place.person()
        said = text_of(person.get("/dead-letters"))
        assert "The queue was purged" in said
        assert len(replay_links(person)) == 2


def test_a_dry_run_sends_nothing_and_the_run_what_it_has_shown(tmp_path: Path) -> None:
    with opened_place(tmp_path) as place, place.manager() as manager:
        ledger = manager.create_queue(r"private$\a", transactional=True)
        kill(manager, r"private$\a", "one", label="shown")
        person = place.person()
        (link,) = replay_links(person)
        page = person.get(link)
        assert "Nothing was sent yet" in page.text
        assert "exactly once" in page.text
        assert "shown" in page.text
        assert manager.queue(DEADXACT).count() == 1
        # What dies after the dry run waits for the next one.
        kill(manager, r"private$\a", "later")
        target = manager.create_queue(r"private$\again", transactional=True)
        answer = person.send("/dead-letters/replay", {**forms(page).hidden, "to": target.name})
        assert answer.status_code == 303
        assert "Sent again: 1 dead letter." in text_of(person.get("/dead-letters"))
        assert [message.label for message in target.browse()] == ["shown"]
        assert [letter.body for letter in manager.queue(DEADXACT).browse()] == ["later"]
        assert ledger.count() == 0


def test_a_letter_is_itself_again(tmp_path: Path) -> None:
    with opened_place(tmp_path) as place, place.manager() as manager:
        manager.create_queue(r"private$\a", transactional=True)
        target = manager.create_queue(r"private$\b", transactional=True)
        kill(manager, r"private$\a", "body", label="l", extension=b"e", application_tag=5)
        person = place.person()
        (link,) = replay_links(person)
        run(person, f"{link}&{urlencode({'to': target.name})}")
        (message,) = target.browse()
        assert (message.body, message.label, message.extension) == ("body", "l", b"e")
        assert message.application_tag == 5
        assert message.message_class == MessageClass.NORMAL
        assert manager.queue(DEADXACT).count() == 0


def test_letters_that_know_no_transaction_are_sent_and_then_removed(tmp_path: Path) -> None:
    with opened_place(tmp_path) as place, place.manager() as manager:
        manager.create_queue(r"private$\a")
        kill(manager, r"private$\a", "one")
        target = manager.create_queue(r"private$\b")
        person = place.person()
        (link,) = replay_links(person)
        assert "at least once" in person.get(link).text
        said = run(person, f"{link}&{urlencode({'to': target.name})}")
        assert "Sent again: 1 dead letter." in said


@pytest.mark.parametrize("to", [r"private$\nowhere", "nonsense", "DIRECT=OS:"])
def test_a_destination_that_is_none_is_told_in_the_dry_run(tmp_path: Path, to: str) -> None:
    with opened_place(tmp_path) as place, place.manager() as manager:
        manager.create_queue(r"private$\a", transactional=True)
        kill(manager, r"private$\a", "one")
        person = place.person()
        (link,) = replay_links(person)
        page = person.get(f"{link}&{urlencode({'to': to})}")
        assert "not possible" in page.text
        answer = person.send(
            "/dead-letters/replay", {**forms(page).hidden, "to": to, "stop": "99999"}
        )
        assert answer.status_code == 409
        assert manager.queue(DEADXACT).count() == 1


def test_only_dead_letters_are_replayed(tmp_path: Path) -> None:
    with opened_place(tmp_path) as place, place.manager() as manager:
        manager.create_queue(r"private$\a").send("safe")
        person = place.person()
        query = urlencode({"queue": r"private$\a", "reason": "", "destination": "x"})
        assert person.get(f"/dead-letters/replay?{query}").status_code == 404
        fields = {"form_token": person.form_token, "queue": r"private$\a", "stop": "9", "to": "x"}
        assert person.send("/dead-letters/replay", fields).status_code == 404
        fields |= {"queue": DEAD, "stop": "evil"}
        assert person.send("/dead-letters/replay", fields).status_code == 400


def test_very_many_letters_are_looked_at_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LETTERS_MAX_COUNT", 20)
    monkeypatch.setattr(limits, "REPLAY_MAX_COUNT", 5)
    with opened_place(tmp_path) as place, place.manager() as manager:
        manager.create_queue(r"private$\a", transactional=True)
        kill(manager, r"private$\a", *range(30))
        person = place.person()
        assert "the oldest 20 of 30" in text_of(person.get("/dead-letters"))
        (link,) = replay_links(person)
        assert "Replay 5 dead letters" in person.get(link).text


def test_two_who_replay_at_the_same_time_send_each_letter_once(tmp_path: Path) -> None:
    with opened_place(tmp_path) as place, place.manager() as manager:
        manager.create_queue(r"private$\a", transactional=True)
        kill(manager, r"private$\a", *range(20))
        target = manager.create_queue(r"private$\b", transactional=True)
        one, other = place.person(), place.person()
        (link,) = replay_links(one)
        pages = [each.get(link) for each in (one, other)]
        fields = [{**forms(page).hidden, "to": target.name} for page in pages]
        with ThreadPoolExecutor() as threads:
            sends = [
                threads.submit(person.send, "/dead-letters/replay", field)
                for person, field in zip((one, other), fields, strict=True)
            ]
        assert [send.result().status_code for send in sends] == [303, 303]
        assert sorted(message.body for message in target.browse()) == list(range(20))
        assert manager.queue(DEADXACT).count() == 0


# Killed in between.

PROGRAM = """
import os, sys
from openmsmq.client.operating import resending
from openmsmq.cli.app import main
place, left = sys.argv[1], int(sys.argv[2])
sys.argv = ["openmsmq", *sys.argv[3:]]
send_as_it_was = resending.send_as_it_was
async def dying(target, message, transaction):
    global left
    if place == "before" and not left:
        os._exit(9)
    sent = await send_as_it_was(target, message, transaction)
    if place == "after" and not left:
        os._exit(9)
    left -= 1
    return sent
import openmsmq.console.pages.letters as letters
letters.send_as_it_was = dying
main()
"""


@pytest.mark.parametrize(("moment", "done"), [("before", 0), ("after", 3)])
def test_a_console_that_is_killed_in_a_replay_loses_and_doubles_nothing(
    place: Place, moment: str, done: int
) -> None:
    with place.manager() as manager:
        source = manager.create_queue(rf"private$\{moment}", transactional=True)
        target = manager.create_queue(rf"private$\{moment}-again", transactional=True)
        letters = manager.queue(DEADXACT)
        letters.purge()
        kill(manager, source.name, *range(6))
        victim = subprocess.Popen(
            [
                *(command_line()[0], "-c", PROGRAM, moment, str(done)),
                *("--qm", place.address, "console", "--listen", "127.0.0.1:0"),
            ],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        replay_until_killed(victim, target.name)
        assert victim.wait(20) == 9
        assert (target.count(), letters.count()) == (done, 6 - done)
        found = [message.body for queue in (letters, target) for message in queue.browse()]
        assert sorted(found) == list(range(6))


def replay_until_killed(victim: subprocess.Popen[str], to: str) -> None:
    address, link = read_links(victim)
    assert victim.stdout is not None
    victim.stdout.close()
    origin = {"Origin": address.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as browser:
        hidden = forms(browser.get(link)).hidden
        assert browser.post("/sign-in", data=hidden, headers=origin).status_code == 303
        page = browser.get("/dead-letters").text
        (found,) = re.findall(r'href="(/dead-letters/replay\?[^"]+)"', page)
        plan = browser.get(f"{found.replace('&amp;', '&')}&{urlencode({'to': to})}")
        with pytest.raises(httpx.TransportError):
            browser.post("/dead-letters/replay", data=forms(plan).hidden, headers=origin)


# Looking again and again.


class Eyes:
    """Counts how many letters the console has read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        group_of = letters.group_of

        def seen(*arguments: Any) -> letters.Group:
            self.count += 1
            return group_of(*arguments)

        monkeypatch.setattr(letters, "group_of", seen)

    def read(self, person: Person, *, live: bool = True) -> tuple[int, str]:
        """Look at the page; gives how many letters were read for it, and what it says."""
        before = self.count
        page = person.get("/dead-letters", headers={"X-Live": "1"} if live else {})
        assert page.status_code == 200
        return self.count - before, text_of(page)


def test_a_page_that_looks_again_reads_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eyes = Eyes(monkeypatch)
    with opened_place(tmp_path) as place, place.manager() as manager:
        manager.create_queue(r"private$\a", transactional=True)
        manager.create_queue(r"private$\b")
        kill(manager, r"private$\a", *range(7))
        kill(manager, r"private$\b", *range(2))
        person, other = place.person(), place.person()
        assert eyes.read(person, live=False)[0] == 9
        assert eyes.read(person)[0] == 0
        assert eyes.read(person, live=False)[0] == 0
        kill(manager, r"private$\a", *range(3))
        count, said = eyes.read(person)
        assert count == 3
        assert r"PRIVATE$\ a 10 Replay…" in said
        # Each session counts for itself: others may look into other queues.
        assert eyes.read(other)[0] == 12


def test_what_has_left_is_counted_again_but_not_every_few_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eyes = Eyes(monkeypatch)
    with opened_place(tmp_path) as place, place.manager() as manager:
        manager.create_queue(r"private$\a", transactional=True)
        kill(manager, r"private$\a", *range(7))
        person = place.person()
        eyes.read(person)
        manager.queue(DEADXACT).receive(0)
        count, said = eyes.read(person)
        assert count == 0
        assert "Some have left since these were counted" in said
        # Somebody who asks gets an answer.
        count, said = eyes.read(person, live=False)
        assert (count, "Some have left" in said) == (6, False)
        manager.queue(DEADXACT).receive(0)
        assert eyes.read(person)[0] == 0
        place.console.clock.now_s += limits.LETTERS_AGAIN_S
        count, said = eyes.read(person)
        assert (count, "Some have left" in said) == (5, False)
        # As many come as have left: the queue is as long as before, and not the same.
        manager.queue(DEADXACT).receive(0)
        kill(manager, r"private$\a", "new")
        assert "Some have left since these were counted" in eyes.read(person)[1]
        manager.queue(DEADXACT).purge()
        assert "There are none." in eyes.read(person, live=False)[1]


def test_who_may_not_look_any_more_does_not_see_what_was_counted(tmp_path: Path) -> None:
    user = unix_user(70_001)
    with opened_place(tmp_path) as place, place.manager() as manager:
        manager.create_queue(r"private$\a", transactional=True)
        kill(manager, r"private$\a", "x")
        manager.grant("user:70001", "peek-dead-letters")
        person = place.person(place.token(user=user))
        assert "The queue was purged" in person.get("/dead-letters").text
        manager.revoke("user:70001")
        page = person.get("/dead-letters", headers={"X-Live": "1"})
        assert (page.status_code, "The queue was purged" in page.text) == (403, False)


def test_what_is_remembered_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LETTER_GROUPS_KEPT_COUNT", 1)
    eyes = Eyes(monkeypatch)
    with opened_place(tmp_path) as place, place.manager() as manager:
        for name in ("a", "b"):
            manager.create_queue(rf"private$\{name}", transactional=True)
            kill(manager, rf"private$\{name}", "x")
        person = place.person()
        assert eyes.read(person)[0] == 2
        assert eyes.read(person)[0] == 2
        assert "The queue was purged" in eyes.read(person)[1]


def test_who_may_not_look_leaves_nothing_behind_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions come and go, and what is remembered for one holds its token."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    class Remembered(letters.Walk):
        def __init__(self) -> None:
            super().__init__()
            alive.add(self)

    monkeypatch.setattr(letters, "Walk", Remembered)
    monkeypatch.setattr(limits, "LETTER_LOOKS_KEPT_COUNT", 3)
    with opened_place(tmp_path) as place:
        token = place.token(Scope.SEND, user=unix_user(70_001))
        for _ in range(5):
            assert place.person(token).get("/dead-letters").status_code == 403
        gc.collect()
        assert 0 < len(alive) <= 3
