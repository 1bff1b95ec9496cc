"""What is done by pressing buttons: sending, changing, moving, deleting, deciding."""

from __future__ import annotations

import re

import pytest

from openmsmq import SINGLE_MESSAGE
from openmsmq.api.messages import OutgoingStatus
from openmsmq.console import limits
from openmsmq.model.errors import ReceiveTimeout
from openmsmq.model.message import BodyType
from tests.console.people import Person, Place, forms, queue_path, text_of

NEW = {"form": "text", "priority": "3"}
ELSEWHERE = r"DIRECT=TCP:127.0.0.99\private$\orders"


def only_message(operator: Person, queue: str) -> str:
    (path,) = re.findall(
        r'href="(/queues/[\w-]+/messages/\d+)"', operator.get(queue_path(queue)).text
    )
    return path


def put(place: Place, queue: str, body: object = "hello", **options: object) -> None:
    with place.manager() as manager:
        target = manager.queue(queue)
        is_transactional = target.properties().transactional
        target.send(body, transaction=SINGLE_MESSAGE if is_transactional else None, **options)


def bodies(place: Place, queue: str) -> list[object]:
    with place.manager() as manager:
        return [message.body for message in manager.queue(queue).browse()]


# Sending.


def test_what_is_typed_is_sent(place: Place, operator: Person, ledger: str) -> None:
    page = operator.press(
        f"{queue_path(ledger)}/send",
        **NEW,
        label="ünï",
        body="line 1\r\nline 2 <b>",
        recoverable="yes",
        lifetime_s="60",
        response_queue=r"private$\answers",
    )
    assert "Sent as" in text_of(page)
    with place.manager() as manager:
        message = manager.queue(ledger).receive(0)
    assert message.label == "ünï"
    assert message.body == "line 1\nline 2 <b>"
    assert message.body_type == BodyType.TEXT
    assert message.time_to_be_received_s == 60
    assert r"private$\answers" in str(message.response_queue).lower()
    assert message.transactional


@pytest.mark.parametrize(
    ("form", "typed", "body"),
    [("utf8", '{"a": "ü"}', '{"a": "ü"}'.encode()), ("hex", "00 ff 10", b"\x00\xff\x10")],
)
def test_bytes_are_sent_as_bytes(
    place: Place, operator: Person, queue: str, form: str, typed: str, body: bytes
) -> None:
    operator.press(f"{queue_path(queue)}/send", form=form, priority="5", body=typed)
    with place.manager() as manager:
        message = manager.queue(queue).receive(0)
    assert message.body_bytes == body
    assert message.body_type == BodyType.UNSPECIFIED
    assert message.priority == 5
    assert not message.recoverable


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"priority": "9"}, "priority"),
        ({"priority": "x"}, "priority is a number"),
        ({"form": "evil"}, "how the body is written"),
        ({"form": "hex", "body": "xyz"}, "hex digits"),
        ({"lifetime_s": "-1"}, "number of seconds"),
        ({"label": "x" * 300}, "label"),
        ({"response_queue": "no\x00thing"}, ""),
    ],
)
def test_what_cannot_be_sent_is_refused_with_a_sentence(
    place: Place, operator: Person, queue: str, fields: dict[str, str], words: str
) -> None:
    page = operator.press(f"{queue_path(queue)}/send", **{**NEW, **fields})
    assert page.status_code in (400, 409)
    assert words in text_of(page)
    assert bodies(place, queue) == []


def test_news_are_told_once(operator: Person, queue: str) -> None:
    operator.press(f"{queue_path(queue)}/send", **NEW)
    assert "Sent as" not in operator.get(queue_path(queue)).text


# Changing what is there.


@pytest.mark.parametrize("take_out", [True, False])
@pytest.mark.parametrize("kind", ["queue", "ledger"])
def test_a_message_is_changed_and_sent_and_the_rest_stays_as_it_was(
    place: Place, operator: Person, request: pytest.FixtureRequest, kind: str, take_out: bool
) -> None:
    name = request.getfixturevalue(kind)
    put(place, name, "before", label="a", application_tag=77, extension=b"more", body_type=None)
    path = only_message(operator, name)
    fields = {**NEW, "to": name, "label": "b", "body": "after"}
    page = operator.press(f"{path}/edit", **fields, **({"take_out": "yes"} if take_out else {}))
    assert page.status_code == 200, text_of(page)
    with place.manager() as manager:
        found = list(manager.queue(name).browse())
    assert [message.body for message in found] == (["after"] if take_out else ["before", "after"])
    assert found[-1].label == "b"
    assert found[-1].application_tag == 77
    assert found[-1].extension == b"more"


def test_the_form_shows_a_message_so_that_nothing_changes_by_sending_it(
    place: Place, operator: Person, queue: str
) -> None:
    put(place, queue, b"\x00\x01\r\n", label="bytes", body_type=BodyType.BYTES)
    path = only_message(operator, queue)
    text = operator.get(f"{path}/edit").text
    assert "00 01 0d 0a" in text
    assert re.search(r'value="hex" selected', text)
    operator.press(
        f"{path}/edit", form="hex", priority="3", to=queue, body="00 01 0d 0a", take_out="yes"
    )
    with place.manager() as manager:
        message = manager.queue(queue).receive(0)
    assert (message.body_bytes, message.body_type) == (b"\x00\x01\r\n", BodyType.BYTES)


def test_a_body_that_is_too_long_for_a_form_is_not_cut(
    place: Place, operator: Person, queue: str
) -> None:
    put(place, queue, "x" * (limits.TEXT_SHOWN_CHARACTERS + 1))
    page = operator.get(f"{only_message(operator, queue)}/edit")
    assert page.status_code == 409
    assert "too long" in text_of(page)


def test_the_message_that_was_looked_at_is_meant_and_no_other(
    place: Place, operator: Person, queue: str
) -> None:
    put(place, queue)
    path = only_message(operator, queue)
    hidden = forms(operator.get(f"{path}/delete")).hidden
    hidden["message_id"] = hidden["message_id"][:-1] + "999"
    assert operator.send(f"{path}/delete", hidden).status_code == 409
    fields = {**hidden, **NEW, "to": queue, "take_out": "yes"}
    assert operator.send(f"{path}/edit", fields).status_code == 409
    assert bodies(place, queue) == ["hello"]


def test_a_copy_is_sent_as_it_is_to_any_kind_of_queue(
    place: Place, operator: Person, queue: str, ledger: str
) -> None:
    put(place, queue, "hello", label="kept", extension=b"ext")
    path = only_message(operator, queue)
    page = operator.press(f"{path}/copy", to=ledger)
    assert "A copy was sent" in text_of(page)
    with place.manager() as manager:
        message = manager.queue(ledger).receive(0)
    assert (message.body, message.label, message.extension) == ("hello", "kept", b"ext")
    assert message.transactional
    assert bodies(place, queue) == ["hello"]
    assert operator.press(f"{path}/copy", to=r"private$\nowhere").status_code == 404
    assert operator.press(f"{path}/copy", to="").status_code == 400


def test_a_copy_can_go_to_another_computer(place: Place, operator: Person, queue: str) -> None:
    put(place, queue)
    page = operator.press(f"{only_message(operator, queue)}/copy", to=ELSEWHERE)
    assert "A copy was sent" in text_of(page)
    with place.manager() as manager:
        assert manager.outgoing_queue(ELSEWHERE).message_count


def test_a_message_moves_to_a_subqueue_and_back(place: Place, operator: Person, queue: str) -> None:
    put(place, queue)
    operator.press(f"{only_message(operator, queue)}/move", subqueue="later")
    assert bodies(place, queue) == []
    assert bodies(place, f"{queue};later") == ["hello"]
    back = only_message(operator, f"{queue};later")
    assert operator.press(f"{back}/move", subqueue="a;b").status_code == 400
    assert operator.press(f"{back}/move", subqueue="later").status_code == 400
    operator.press(f"{back}/move", subqueue="")
    assert bodies(place, queue) == ["hello"]


# What is gone is gone.


def test_a_message_is_deleted_after_a_question(place: Place, operator: Person, queue: str) -> None:
    put(place, queue, "a", label="first")
    path = only_message(operator, queue)
    assert "Delete this message?" in operator.get(f"{path}/delete").text
    assert bodies(place, queue) == ["a"]
    assert "Deleted" in text_of(operator.press(f"{path}/delete"))
    assert bodies(place, queue) == []
    assert operator.get(path).status_code == 404


def test_to_purge_a_queue_its_name_is_typed(place: Place, operator: Person, queue: str) -> None:
    for number in range(3):
        put(place, queue, number)
    path = f"{queue_path(queue)}/purge"
    for typed in ("", "private$", queue.upper()):
        page = operator.press(path, typed=typed)
        assert page.status_code == 400
        assert len(bodies(place, queue)) == 3
    assert "Deleted 3 messages." in text_of(operator.press(path, typed=queue))
    assert bodies(place, queue) == []


# Outgoing queues.


def outgoing(place: Place) -> OutgoingStatus:
    with place.manager() as manager:
        found: OutgoingStatus = manager.outgoing_queue(ELSEWHERE)
        return found


def test_an_outgoing_queue_is_paused_and_resumed(place: Place, operator: Person) -> None:
    put_elsewhere(place)
    path = queue_path(ELSEWHERE).replace("/queues/", "/outgoing/")
    assert outgoing(place).explanation in text_of(operator.get(path))
    assert "Paused" in text_of(operator.press(f"{path}/pause"))
    assert outgoing(place).paused
    assert "Resumed" in text_of(operator.press(f"{path}/resume"))
    assert not outgoing(place).paused
    assert operator.press(f"{path}/resend").status_code == 200
    nowhere = queue_path("DIRECT=OS:nobody\\x").replace("/queues/", "/outgoing/")
    assert operator.get(nowhere).status_code == 404


def put_elsewhere(place: Place) -> None:
    with place.manager() as manager:
        manager.queue(ELSEWHERE).send("hello")


# Transactions in doubt.


@pytest.mark.parametrize("word", ["commit", "abort"])
def test_a_transaction_in_doubt_is_decided(
    place: Place, operator: Person, ledger: str, word: str
) -> None:
    with place.manager() as manager:
        transaction = manager.begin()
        manager.queue(ledger).send("in doubt", transaction=transaction)
        transaction.prepare()
        unit = bytes(transaction.unit_of_work).hex()
    assert unit in operator.get("/transactions").text
    path = f"/transactions/{unit}/{word}"
    assert "cannot be mended" in operator.get(path).text
    assert bodies(place, ledger) == []
    assert operator.press(path).status_code == 200
    assert bodies(place, ledger) == (["in doubt"] if word == "commit" else [])
    assert operator.get(path).status_code == 404
    assert operator.get(f"/transactions/xyz/{word}").status_code == 404


# Connections.


def test_a_connection_is_ended_and_never_ones_own(place: Place, operator: Person) -> None:
    with place.manager() as victim:
        victim.status()
        page = operator.get("/connections").text
        numbers = re.findall(r'href="/connections/(\d+)/close"', page)
        assert 'class="tag good">you' in page
        with place.manager() as manager:
            own = [one.number for one in manager.connections() if one.is_own]
            mine = [one.number for one in manager.connections()]
        assert numbers
        path = f"/connections/{numbers[-1]}/close"
        assert "End this connection?" in operator.get(path).text
        assert "Ended the connection" in text_of(operator.press(path))
        with place.manager() as manager:
            left = [one.number for one in manager.connections()]
        assert int(numbers[-1]) not in left
        assert set(own).isdisjoint(left)
        assert len(mine) > 1
    assert operator.get("/connections/99999/close").status_code == 404


def test_a_reader_that_waits_gets_what_was_sent_by_a_form(
    place: Place, operator: Person, queue: str
) -> None:
    operator.press(f"{queue_path(queue)}/send", **NEW, body="for you")
    with place.manager() as manager:
        assert manager.queue(queue).receive(5).body == "for you"
        with pytest.raises(ReceiveTimeout):
            manager.queue(queue).receive(0)
