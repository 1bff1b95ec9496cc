"""The path of a message across two queue managers, by the console and by the command."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import openmsmq
from openmsmq import SINGLE_MESSAGE, AckRequest, Settings
from openmsmq.client.operating.others import settings_for
from openmsmq.console import limits
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.topology import QueueManagerInfo, RoutingLink, Site
from openmsmq.security.access.callers import Scope
from tests.cli.conftest import WORKER, CommandLine
from tests.console.people import ConsoleThread, Person, Place, text_of
from tests.server_thread import ServerThread, start_server

ALPHA, BETA = (f"127.0.{160 + WORKER}.{number}" for number in (1, 2))
NUMBERS = itertools.count(1)
PAUSES_MAX_COUNT = 1000


class Two(NamedTuple):
    """Two queue managers of one directory, and a console before the first."""

    place: Place
    beta: ServerThread
    operator: Person

    def alpha(self) -> Any:
        return openmsmq.connect(ALPHA)

    def other(self) -> Any:
        return openmsmq.connect(BETA)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folders = [tmp_path_factory.mktemp(name) for name in ("alpha", "beta")]
    options: dict[str, Any] = {"api_port": 1802, "api_socket": "none", "transfer": True}
    with (
        start_server(str(folders[0]), address=ALPHA, directory_server=True, **options) as first,
        start_server(
            str(folders[1]), name="BETA", address=BETA, directory=(ALPHA,), **options
        ) as second,
        ConsoleThread(Settings(address=ALPHA), asks_others=True) as console,
    ):
        place = Place(folders[0], first, console)
        with openmsmq.connect(ALPHA) as manager:
            until(lambda: manager.read_directory().manager_named("BETA") is not None)
        operator = Person(console)
        assert operator.sign_in_by_link().status_code == 200
        yield Two(place, second, operator)


def until(condition: Callable[[], bool]) -> None:
    for _ in range(PAUSES_MAX_COUNT):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("it never came to that")


@pytest.fixture
def run(
    two: Two, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    assert two
    return CommandLine(monkeypatch, capsys, ALPHA)


def queue_at_beta(two: Two, **options: Any) -> tuple[str, str]:
    """A new queue: its path there, and its name from elsewhere."""
    path = rf"private$\path{next(NUMBERS)}"
    with two.other() as manager:
        manager.create_queue(path, **options)
    return path, rf"DIRECT=OS:BETA\{path}"


def has_left(manager: Any, name: str) -> bool:
    """Whether nothing waits to go there, or to be acknowledged."""
    return not any(
        one.message_count for one in manager.outgoing() if one.format_name.lower() == name.lower()
    )


def kinds(page: str) -> list[str]:
    return re.findall(r'<span class="tag \w*">(\w+)</span> <b>', page)


def test_a_message_is_followed_from_its_sender_to_the_journal_of_its_reader(
    two: Two, run: CommandLine
) -> None:
    path, name = queue_at_beta(two, transactional=True, journaling=True)
    with two.alpha() as manager, two.other() as beta:
        sent = manager.queue(name).send(
            "x", label="<script>", journal_on_success=True, transaction=SINGLE_MESSAGE
        )
        until(lambda: beta.queue(path).count() == 1)
        page = two.operator.get("/path", params={"id": str(sent)})
        assert f"It is in {path} of BETA." in text_of(page)
        assert kinds(page.text)[0] == "sent"
        assert "here" in kinds(page.text)
        beta.queue(path).receive(0)
        page = two.operator.get("/path", params={"id": str(sent)})
    assert f"It was received from {path} of BETA." in text_of(page)
    assert "not asked" not in page.text
    found = run("message", "trace", str(sent), "--others", "--json").object
    assert found["conclusion"] == f"It was received from {path} of BETA."
    seen = [(one["manager"], one["kind"]) for one in found["places"]]
    assert seen[0] == ("ALPHA", "sent")
    assert ("BETA", "received") in seen
    assert sorted(one["manager"] for one in found["asked"]) == ["ALPHA", "BETA"]
    shown = run("message", "trace", str(sent), "--others").out
    assert "Was received: a copy is kept in the journal." in shown


def test_without_others_only_this_queue_manager_is_asked(two: Two, run: CommandLine) -> None:
    path, name = queue_at_beta(two)
    with two.alpha() as manager, two.other() as beta:
        sent = manager.queue(name).send("x")
        until(lambda: beta.queue(path).count() == 1 and has_left(manager, name))
    result = run("message", "trace", str(sent), code=3)
    assert "Nothing was found of it" in result.out


def test_a_message_that_waits_says_for_what(two: Two) -> None:
    with two.alpha() as manager:
        elsewhere = manager.queue(rf"DIRECT=TCP:127.0.0.99\private$\n{next(NUMBERS)}")
        sent = elsewhere.send("x")
        until(lambda: "127.0.0.99" in manager.outgoing_queue(elsewhere.name).explanation)
        page = two.operator.get("/path", params={"id": str(sent)})
        why = manager.outgoing_queue(elsewhere.name).explanation
    assert "It is on its way, in an outgoing queue of ALPHA." in text_of(page)
    assert why.split("(")[0].split(":")[0].strip()[:20] in text_of(page)


def test_a_dead_message_says_why_it_died(two: Two, run: CommandLine) -> None:
    with two.alpha() as manager:
        queue = manager.create_queue(rf"private$\doomed{next(NUMBERS)}")
        sent = queue.send("x", journal_on_failure=True)
        queue.purge()
    page = text_of(two.operator.get("/path", params={"id": str(sent)}))
    assert "It died at ALPHA." in page
    assert "Died: the queue was purged." in page
    found = run("message", "trace", str(sent), "--json").object
    (died,) = (one for one in found["places"] if one["kind"] == "died")
    assert died["reason"] == "NACK_QUEUE_PURGED"


def test_acknowledgments_tell_of_what_is_gone(two: Two) -> None:
    path, name = queue_at_beta(two)
    with two.alpha() as manager, two.other() as beta:
        admin = manager.create_queue(rf"private$\admin{next(NUMBERS)}")
        sent = manager.queue(name).send(
            "x", admin_queue=admin, acknowledge=int(AckRequest.FULL_RECEIVE)
        )
        until(lambda: beta.queue(path).count() == 1)
        beta.queue(path).receive(0)
        until(lambda: admin.count() >= 1 and has_left(manager, name))
    page = text_of(two.operator.get("/path", params={"id": str(sent)}))
    assert "It is nowhere that was looked; reported as received." in page


def test_who_does_not_answer_is_named_and_the_others_are_asked(two: Two, run: CommandLine) -> None:

    with two.alpha() as manager:
        (site, *_) = manager.read_directory().sites
        gone = QueueManagerInfo(
            identifier=Guid(b"a computer gone!"),
            computer_name="<b>GONE",
            addresses=("127.0.0.98",),
            sites=(site,),
        )
        impostor = QueueManagerInfo(
            identifier=Guid(b"somebody else!!!"),
            computer_name="IMPOSTOR",
            addresses=(BETA,),
            sites=(site,),
        )
        manager.write_directory([gone, impostor])
        sent = manager.create_queue(rf"private$\here{next(NUMBERS)}").send("x")
    try:
        page = two.operator.get("/path", params={"id": str(sent)})
        assert "&lt;b&gt;GONE" in page.text
        assert "<b>GONE" not in page.text
        assert "BETA answers there, and not it" in text_of(page)
        result = run("message", "trace", str(sent), "--others")
        assert "GONE: not asked" in result.err
    finally:
        with two.alpha() as manager:
            manager.write_directory(
                [Removal(ObjectKind.MANAGER, one.identifier) for one in (gone, impostor)]
            )


def test_a_person_sees_no_more_than_his_token_may(two: Two) -> None:
    with two.alpha() as manager:
        queue = manager.create_queue(rf"private$\closed{next(NUMBERS)}")
        sent = queue.send("x")
    person = Person(two.place.console)
    person.sign_in(two.place.token(Scope.SEND))
    page = text_of(person.get("/path", params={"id": str(sent)}))
    assert "Nothing was found of it: not everything was looked through." in page
    assert "not for you to look into" in page


def test_a_search_that_is_cut_says_so(two: Two, run: CommandLine, monkeypatch: Any) -> None:
    with two.alpha() as manager:
        queue = manager.create_queue(rf"private$\many{next(NUMBERS)}")
        queue.send_many(["x"] * 4500)
    wanted = "{00000000-0000-0000-0000-000000000001}\\1"
    result = run("message", "trace", wanted, "--look-at", "1", code=3)
    assert "and no further" in result.err
    monkeypatch.setattr(limits, "TRACE_LOOKED_MAX_COUNT", 1)
    page = text_of(two.operator.get("/path", params={"id": wanted}))
    assert "The search ended before everything was looked through." in page
    with two.alpha() as manager:
        manager.delete_queue(queue.name)


@pytest.mark.parametrize("text", ["nonsense", "{x}\\1", "a" * 40 + "b", "\x00", "zz" * 20])
def test_what_is_no_identifier_is_said_so(two: Two, text: str) -> None:
    page = two.operator.get("/path", params={"id": text})
    assert page.status_code in (200, 400)
    assert "no identifier" in text_of(page) or "Who was asked" not in page.text


def test_a_token_is_shown_to_no_computer_that_others_could_overhear() -> None:

    def info(**options: Any) -> QueueManagerInfo:
        return QueueManagerInfo(identifier=Guid(bytes(16)), computer_name="FAR", **options)

    with_token = Settings(address=ALPHA, token="secret")
    far = info(addresses=("192.0.2.7",))
    made, problem = settings_for(with_token, far)
    assert made is None
    assert "the token" in problem
    made, _ = settings_for(Settings(address=ALPHA), far)
    assert made is not None
    assert made.address == "192.0.2.7:1802"
    # With TLS the other one proves its name, so it is called by its name.
    made, _ = settings_for(Settings(address=ALPHA, token="secret", tls=True), far)
    assert made is not None
    assert (made.address, made.token) == ("FAR:1802", "secret")
    made, _ = settings_for(with_token, info(addresses=("127.0.0.9",)))
    assert made is not None
    made, _ = settings_for(with_token, info(addresses=("::1",)))
    assert made is not None
    assert made.address == "[::1]:1802"
    assert settings_for(Settings(), info(foreign=True))[0] is None


# The map, of the same two.


def test_the_map_shows_who_answers_and_what_is_stuck(two: Two) -> None:

    with two.alpha() as manager:
        image = manager.read_directory()
        (home,) = image.sites
        far = Site(identifier=Guid(b"a site far away!"), name="<script>far")

        link = RoutingLink(
            identifier=Guid(b"a link to there!"), site1=home, site2=far.identifier, cost=1234
        )
        gone = QueueManagerInfo(
            identifier=Guid(b"who is not there"),
            computer_name="GONE",
            addresses=("127.0.0.97",),
            sites=(far.identifier,),
        )
        manager.write_directory([far, gone, link])
        manager.queue(r"DIRECT=TCP:127.0.0.97\private$\x").send_many(["x"] * 7)
        until(
            lambda: any(
                one.message_count == 7 and one.state == "WAITING" for one in manager.outgoing()
            )
        )
        page = two.operator.get("/map")
        said = text_of(page)
        manager.write_directory(
            [
                Removal(ObjectKind.LINK, link.identifier),
                Removal(ObjectKind.MANAGER, gone.identifier),
                Removal(ObjectKind.SITE, far.identifier),
            ]
        )

    assert page.text.count("<svg") >= 1
    assert "<style" not in page.text, "the policy of the page forbids it"
    assert "&lt;script&gt;far" in page.text
    assert "<script>far" not in page.text
    assert "1,234" in said
    assert "ALPHA this one up It answers, and has" in said
    assert "BETA up It answers" in said
    assert "7 stuck 7 messages cannot leave for it from here. It could not be asked" in said


@pytest.mark.usefixtures("two")
def test_who_may_not_be_asked_about_is_not_known() -> None:
    with ConsoleThread(Settings(address=ALPHA)) as console:
        person = Person(console)
        person.sign_in_by_link()
        said = text_of(person.get("/map"))
    assert "as seen from this queue manager" in said
    assert "Started with --ask-others" in said
