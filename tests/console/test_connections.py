"""Who is connected, on pages of the console: a peer with its sequences, applications that wait."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

import openmsmq
from openmsmq import SINGLE_MESSAGE, Settings
from openmsmq.client.errors import ConnectionLost
from openmsmq.console import limits
from tests.cli.conftest import WORKER, CommandLine
from tests.console.people import ConsoleThread, Person, Place, text_of
from tests.server_thread import start_server

ALPHA, BETA = (f"127.0.{176 + WORKER}.{number}" for number in (1, 2))
LEDGER = rf"DIRECT=TCP:{BETA}\private$\ledger"
PLAIN = rf"DIRECT=TCP:{BETA}\private$\plain"
PAUSES_MAX_COUNT = 1000
SCRIPT = "<img src=x onerror=alert(1)>"


class Two(NamedTuple):
    """Two queue managers, and a console before the first."""

    place: Place
    operator: Person


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folders = [tmp_path_factory.mktemp(name) for name in ("alpha", "beta")]
    options = {"api_port": 1802, "api_socket": "none", "transfer": True}
    with (
        start_server(str(folders[0]), address=ALPHA, **options) as first,
        start_server(str(folders[1]), name="BETA", address=BETA, **options),
        ConsoleThread(Settings(address=ALPHA)) as console,
    ):
        place = Place(folders[0], first, console)
        with openmsmq.connect(BETA) as beta:
            beta.create_queue(r"private$\ledger", transactional=True)
            beta.create_queue(r"private$\plain")
        yield Two(place, place.person())


def until(condition: Callable[[], bool]) -> None:
    for _ in range(PAUSES_MAX_COUNT):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("it never came to that")


def test_a_session_shows_the_sequences_that_go_through_it(two: Two) -> None:
    with openmsmq.connect(ALPHA) as manager, openmsmq.connect(BETA) as beta:
        manager.queue(PLAIN).send("x")
        for number in range(3):
            manager.queue(LEDGER).send(number, transaction=SINGLE_MESSAGE)
        until(lambda: beta.queue(r"private$\ledger").count() == 3)
        until(lambda: manager.outgoing_queue(LEDGER).last_acknowledged_number == 3)
        (session,) = [one for one in manager.sessions() if one.is_dialled]
        sequence = manager.outgoing_queue(LEDGER).sequence
    assert f'href="/sessions/{session.number}"' in two.operator.get("/sessions").text
    page = two.operator.get(f"/sessions/{session.number}")
    said = text_of(page)
    assert f"To {BETA}" in said
    ledger, plain = (
        next(part for part in page.text.split("<tr>") if name in part)
        for name in ("ledger", "plain")
    )
    assert f"{sequence:#018x}" in ledger
    assert 'data-label="Next number">4<' in ledger
    assert "up to 3, " in ledger
    assert "none yet" in plain
    outgoing = two.operator.get(f"/outgoing/{ledger.split('/outgoing/')[1].split(chr(34))[0]}")
    assert f"{sequence:#018x}" in outgoing.text


def test_sequences_that_come_in_are_shown_and_found(two: Two) -> None:
    name = rf"DIRECT=TCP:{ALPHA}\private$\<b>arrivals"
    with openmsmq.connect(ALPHA) as manager, openmsmq.connect(BETA) as beta:
        arrivals = manager.create_queue(r"private$\<b>arrivals", transactional=True)
        for number in range(3):
            beta.queue(name).send(number, transaction=SINGLE_MESSAGE)
        until(lambda: arrivals.count() == 3)
        (found,) = manager.incoming_sequences(filter="ARRIVALS").sequences
        assert found.sequence == beta.outgoing_queue(name).sequence
        sender = str(beta.identifier)
    page = two.operator.get("/sequences", params={"find": sender})
    said = text_of(page)
    assert sender in said
    assert f"{found.sequence:#018x}" in said
    assert 'data-label="Last number">3<' in page.text
    assert "<b>arrivals" not in page.text
    assert "1 of 1 in all" in said
    assert "There is none that fits" in text_of(two.operator.get("/sequences?find=nobody"))
    assert "There is none that fits" in text_of(two.operator.get("/sequences?rejected=1"))
    assert 'href="/sequences"' in two.operator.get("/sessions").text


def test_pages_of_sequences_go_on_where_the_last_one_ended(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SEQUENCES_PAGE_COUNT", 1)
    with openmsmq.connect(ALPHA) as manager, openmsmq.connect(BETA) as beta:
        for number in (1, 2):
            name = rf"private$\page{number}"
            queue = manager.create_queue(name, transactional=True)
            beta.queue(rf"DIRECT=TCP:{ALPHA}\{name}").send("x", transaction=SINGLE_MESSAGE)
            until(lambda queue=queue: queue.count() == 1)  # type: ignore[misc]
    shown: list[str] = []
    path = "/sequences?find=page"
    while path:
        page = two.operator.get(path)
        shown += [name for name in ("page1", "page2") if name in text_of(page)]
        _, _, following = page.text.partition('rel="next" href="')
        path = html.unescape(following.partition('"')[0])
    assert sorted(shown) == ["page1", "page2"]
    assert two.operator.get("/sequences?after=xyz").status_code == 404
    assert two.operator.get("/sequences?after=00").status_code == 409


def test_the_command_lists_sequences_too(
    two: Two, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert two
    run = CommandLine(monkeypatch, capsys, ALPHA)
    with openmsmq.connect(ALPHA) as manager, openmsmq.connect(BETA) as beta:
        for number in range(3):
            name = rf"private$\listed{number}"
            queue = manager.create_queue(name, transactional=True)
            beta.queue(rf"DIRECT=TCP:{ALPHA}\{name}").send("x", transaction=SINGLE_MESSAGE)
            until(lambda queue=queue: queue.count() == 1)  # type: ignore[misc]
        sender = str(beta.identifier)
    found = run("sequence", "list", "--filter", "LISTED", "--json").objects
    assert {one["destination"][-7:] for one in found} == {"listed0", "listed1", "listed2"}
    for one in found:
        assert (one["manager_id"], one["address"], one["name"]) == (sender, BETA, None)
        assert (one["number"], one["rejected_count"]) == (1, 0)
        assert one["since"].endswith("Z")
        assert one["last_message"].endswith("Z")
    result = run("sequence", "list", "--filter", "listed", "--limit", "2")
    assert result.out.count("listed") == 2
    assert "these are the first 2" in result.err
    assert run("sequence", "list", "--rejected").out == "none fits\n"


def test_a_session_that_is_gone_is_said_to_be(two: Two) -> None:
    page = two.operator.get("/sessions/999999")
    assert page.status_code == 404
    assert "not there any more" in text_of(page)
    assert two.operator.get("/sessions/x").status_code == 404


def test_an_application_is_seen_to_wait_and_is_cut_off(two: Two) -> None:
    name = r"private$\waited"
    with openmsmq.connect(ALPHA) as manager:
        manager.create_queue(name)
    ended: list[BaseException] = []
    with openmsmq.connect(ALPHA) as reader:
        (number,) = [one.number for one in reader.connections() if one.is_own]

        def wait() -> None:
            try:
                reader.queue(name).receive()
            except ConnectionLost as error:
                ended.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        path = f"/connections/{number}"
        until(lambda: "Reads that wait 1" in text_of(two.operator.get(path)))
        assert f'href="{path}"' in two.operator.get("/connections").text
        said = text_of(two.operator.get(path))
        assert "waited receive with everybody 1" in said
        assert "Ended the connection" in text_of(two.operator.press(f"{path}/close"))
        # The client connects again by itself, and waits there: the one that was cut off is gone.
        until(lambda: two.operator.get(path).status_code == 404)
    waiting.join()
    assert len(ended) == 1


def test_a_connection_that_has_nothing_open_and_ones_own(two: Two) -> None:
    with openmsmq.connect(ALPHA) as manager:
        (number,) = [one.number for one in manager.connections() if one.is_own]
        said = text_of(two.operator.get(f"/connections/{number}"))
        assert "It has no queue open." in said
    (own,) = [
        part.split('"')[0]
        for part in two.operator.get("/connections").text.split('href="')
        if part.startswith("/connections/") and ">you<" in part
    ]
    page = two.operator.get(own)
    assert ">you<" in page.text
    assert "/close" not in page.text


def test_a_name_that_an_application_has_open_is_no_script(two: Two) -> None:
    name = rf"DIRECT=TCP:127.0.0.99\private$\{SCRIPT}"
    with openmsmq.connect(ALPHA) as manager:
        manager.queue(name).send("x")
        (number,) = [one.number for one in manager.connections() if one.is_own]
        page = two.operator.get(f"/connections/{number}")
    assert SCRIPT not in page.text
    assert "&lt;img src=x onerror=alert(1)&gt;" in page.text
