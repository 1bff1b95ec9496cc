"""What pages show: queues and messages by page, bodies as they are, and nobody's script."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path

import pytest

from openmsmq import SINGLE_MESSAGE
from openmsmq.client.messages.queue_file import read_origin, read_packets
from openmsmq.console import limits
from openmsmq.model.message import BodyType
from openmsmq.runtime.config.alarm_table import AlarmRule, AlarmTable, Measure
from tests.console.people import Person, Place, forms, opened_place, queue_path, text_of
from tests.runtime.computers import wait_for

HOSTILE = """<script>alert(1)</script>"'><img src=x onerror=alert(1)>{{7*7}}&\u202e"""


def message_paths(page_text: str) -> list[str]:
    return re.findall(r'href="(/queues/[\w-]+/messages/\d+)"', page_text)


def only_message(operator: Person, queue: str) -> str:
    (path,) = message_paths(operator.get(queue_path(queue)).text)
    return path


# Whose words are on a page.


def test_what_strangers_write_is_text_on_every_page(
    place: Place, operator: Person, ledger: str
) -> None:
    with place.manager() as manager:
        queue = manager.queue(ledger)
        queue.change(label=HOSTILE[:100])
        queue.send(HOSTILE, label=HOSTILE, extension=HOSTILE.encode(), transaction=SINGLE_MESSAGE)
    message = only_message(operator, ledger)
    pages = [
        "/queues",
        f"/queues?find={HOSTILE}",
        f"/sequences?find={HOSTILE}",
        f"/audit?find={HOSTILE}",
        f"/configuration?find={HOSTILE}",
        queue_path(ledger),
        f"{queue_path(ledger)}?find={HOSTILE}",
        f"{queue_path(ledger)}/properties",
        f"{queue_path(ledger)}/purge",
        message,
        *(f"{message}/{word}" for word in ("edit", "copy", "move", "delete")),
    ]
    for path in pages:
        page = operator.get(path)
        assert page.status_code == 200, path
        assert forms(page).tags.count("script") == 1
        # The only picture is the one in the bar.
        assert forms(page).tags.count("img") == 1
        assert (
            "\u202e" not in page.text.replace("%E2%80%AE", "") or "edit" in path or "find" in path
        )


@pytest.mark.parametrize("name", [r"private$\a<b>c", "private$\\it's&x", r"private$\a b%2e"])
def test_a_queue_may_be_called_anything_that_msmq_allows(
    place: Place, operator: Person, name: str
) -> None:
    with place.manager() as manager:
        manager.create_queue(name).send("hello", label="here")
    page = operator.get(queue_path(name))
    assert page.status_code == 200
    assert "here" in page.text
    assert name not in page.text or "<" not in name
    assert operator.get("/queues?find=private").text.count("<script") == 1


# Searching.


def test_messages_are_found_by_a_text_in_label_or_body(
    place: Place, operator: Person, queue: str
) -> None:
    with place.manager() as manager:
        found = manager.queue(queue)
        found.send("nothing of it", label="plain")
        found.send(b'{"order": 4711}', label="as bytes")
        found.send("order 4711 in a text", label="as text")
        found.send("x", label="label 4711")
        found.send("x", admin_queue=manager.queue(queue), label="order")
    page = operator.get(queue_path(queue), params={"find": "4711"})
    labels = re.findall(r'/messages/\d+">([^<]+)</a>', page.text)
    assert labels == ["as bytes", "as text", "label 4711"]
    assert "3 with this text, of 5 looked at" in text_of(page)
    nothing = text_of(operator.get(queue_path(queue), params={"find": "nowhere"}))
    assert "None of 5 messages that were looked at has this text." in nothing
    # The name of the queue is in the packet of the last, and is no text of the message.
    name = queue.rpartition("\\")[2]
    assert "0 with this text" in text_of(operator.get(queue_path(queue), params={"find": name}))


def test_a_search_goes_on_where_it_ended_and_finds_each_message_once(
    place: Place, operator: Person, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SEARCHED_MAX_COUNT", 10)
    monkeypatch.setattr(limits, "SEARCH_BATCH_COUNT", 4)
    monkeypatch.setattr(limits, "MESSAGES_PAGE_COUNT", 5)
    with place.manager() as manager:
        for number in range(60):
            manager.queue(queue).send("x", label=f"{'wanted' if number % 3 else 'other'} {number}")
    path: str | None = f"{queue_path(queue)}?find=wanted"
    labels: list[str] = []
    pages = 0
    while path:
        page = operator.get(path)
        shown = re.findall(r'/messages/\d+">([^<]+)</a>', page.text)
        assert len(shown) <= 5
        labels += shown
        pages += 1
        following = re.search(r'rel="next" href="([^"]+)"', page.text)
        path = None if following is None else following[1].replace("&amp;", "&")
    assert labels == [f"wanted {number}" for number in range(60) if number % 3]
    assert pages >= 8


def test_a_page_that_looks_again_by_itself_does_not_search(
    place: Place, operator: Person, queue: str
) -> None:
    with place.manager() as manager:
        manager.queue(queue).send("x", label="wanted")
    page = operator.get(f"{queue_path(queue)}?find=nowhere", headers={"X-Live": "1"})
    assert "looked at has this text" not in text_of(page)
    assert page.status_code == 200


# Bodies.

BODIES = [
    ("text", "hello", "hello"),
    ("number", 42, "42"),
    ("fraction", 2.5, "2.5"),
    ("money", Decimal("12.34"), "12.34"),
    ("yes", True, "True"),
    ("a day", datetime.datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05"),  # noqa: DTZ001
    ("json", '{"a":[1,2]}', "&#34;a&#34;: [\n    1,\n    2"),
    ("json bytes", b'{"a":1}', "JSON"),
    ("xml", '<a x="1"><b>t</b></a>', "&lt;a x=&#34;1&#34;&gt;\n  &lt;b&gt;t&lt;/b&gt;"),
    ("no xml", "<a><b></a>", "&lt;a&gt;&lt;b&gt;&lt;/a&gt;"),
    ("an entity", '<!DOCTYPE a [<!ENTITY b "boom">]><a>&b;</a>', "&amp;b;"),
    ("a file", '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "&amp;b;"),
    ("bytes", bytes(range(256)), "00 01 02 03"),
    ("texts in bytes", b"\x00\x01secret word\xff", "secret word"),
    ("an object", bytes.fromhex("0001000000ffffffff01000000") + b"System.Evil", "not deserialized"),
    ("nothing", b"", "empty"),
]


@pytest.mark.parametrize(("label", "body", "shown"), BODIES, ids=[name for name, _, _ in BODIES])
def test_a_body_is_decoded_by_its_type_and_never_run(
    place: Place, operator: Person, queue: str, label: str, body: object, shown: str
) -> None:
    with place.manager() as manager:
        manager.queue(queue).send(body, label=label)
    page = operator.get(only_message(operator, queue))
    assert page.status_code == 200
    assert shown in page.text
    assert "root:" not in page.text


DEEP = limits.PARSED_DEPTH_MAX_COUNT + 1
GROWING = {
    "lists": "[" * DEEP + "1," * 100_000 + "1" + "]" * DEEP,
    "objects": '{"a":' * DEEP + "[" + "{}," * 50_000 + "1]" + "}" * DEEP,
    "elements": "<a>" * DEEP + "<b/>" * 50_000 + "</a>" * DEEP,
    "long": "[" + "1," * (limits.PARSED_MAX_BYTES // 2) + "1]",
    "quotes": '["' + r"\"" * (limits.PARSED_MAX_BYTES // 2 - 1),
}


@pytest.mark.parametrize("body", GROWING.values(), ids=GROWING)
def test_a_body_that_would_grow_when_it_is_laid_out_is_shown_as_it_is(
    place: Place, operator: Person, queue: str, body: str
) -> None:
    # Each of very many short lines would begin with hundreds of spaces.
    with place.manager() as manager:
        manager.queue(queue).send(body.encode(), label="grows")
    page = operator.get(only_message(operator, queue))
    assert page.status_code == 200
    assert "laid out for reading" not in page.text


def test_brackets_in_texts_are_no_depth(place: Place, operator: Person, queue: str) -> None:
    with place.manager() as manager:
        manager.queue(queue).send('{"a":"' + r"[\"{" * DEEP + '"}', label="flat")
    assert "laid out for reading" in operator.get(only_message(operator, queue)).text


def test_a_long_body_is_shown_in_part_and_downloaded_whole(
    place: Place, operator: Person, queue: str
) -> None:
    body = "<a>" * 100 + "x" * 1_000_000
    with place.manager() as manager:
        manager.queue(queue).send(body, label="long")
    path = only_message(operator, queue)
    page = operator.get(path)
    assert len(page.content) < 400_000
    assert "Only the beginning is shown." in page.text
    got = operator.get(f"{path}/body")
    assert got.content.decode("utf-16-le") == body


def test_a_download_is_a_file_with_a_harmless_name_and_never_a_page(
    place: Place, operator: Person, queue: str
) -> None:
    with place.manager() as manager:
        manager.queue(queue).send(b"<script>alert(1)</script>", label="a")
    path = only_message(operator, queue)
    for got in (
        operator.get(f"{path}/body"),
        operator.get(f"{path}/packet"),
        operator.get(f"{queue_path(queue)}/export"),
    ):
        assert got.headers["content-type"] == "application/octet-stream"
        assert re.fullmatch(
            r'attachment; filename="[A-Za-z0-9._-]+"', got.headers["content-disposition"]
        )
        assert "sandbox" in got.headers["content-security-policy"]


def test_a_queue_is_exported_as_the_file_that_import_reads(
    place: Place, operator: Person, queue: str, tmp_path: Path
) -> None:
    with place.manager() as manager:
        manager.queue(queue).send_many([f"m{number}" for number in range(450)])
    file = tmp_path / "queue"
    file.write_bytes(operator.get(f"{queue_path(queue)}/export").content)
    with file.open("rb") as opened:
        assert read_origin(opened).queue.lower() == queue
        assert len(list(read_packets(opened))) == 450
    with place.manager() as manager:
        assert manager.queue(queue).count() == 450


# Pages of lists.


def test_messages_come_page_by_page_and_back(place: Place, operator: Person, queue: str) -> None:
    count = limits.MESSAGES_PAGE_COUNT * 2 + 7
    with place.manager() as manager:
        for number in range(count):
            manager.queue(queue).send(f"m{number}", label=f"m{number:03}", priority=number % 8)
            if number % 5 == 0:
                # Gaps between the arrival numbers.
                manager.queue(queue).send("gone", label="gone")
        for message in list(manager.queue(queue).peek_many(1000, 0)):
            if message.label == "gone":
                manager.queue(queue).receive_by_lookup_id(message.lookup_id)

    def labels(page_text: str) -> list[str]:
        return re.findall(r">(m\d{3})</a>", page_text)

    def way(page_text: str, rel: str) -> str | None:
        found = re.search(rf'rel="{rel}" href="([^"]+)"', page_text)
        return None if found is None else found[1]

    everything = [f"m{number:03}" for number in range(count)]
    first = operator.get(queue_path(queue)).text
    size = limits.MESSAGES_PAGE_COUNT
    assert labels(first) == everything[:size]
    assert way(first, "prev") is None
    following = way(first, "next")
    assert following
    second = operator.get(following).text
    assert labels(second) == everything[size : 2 * size]
    last = operator.get(way(second, "next") or "").text
    assert labels(last) == everything[2 * size :]
    assert way(last, "next") is None
    back = operator.get(way(last, "prev") or "").text
    assert labels(back) == everything[size : 2 * size]
    assert labels(operator.get(way(back, "prev") or "").text) == everything[:size]
    newest = operator.get(f"{queue_path(queue)}?newest=1").text
    assert labels(newest) == everything[-size:]


def test_large_messages_make_a_short_page_and_none_is_left_out(
    place: Place, operator: Person, queue: str
) -> None:
    with place.manager() as manager:
        for number in range(5):
            manager.queue(queue).send(bytes(1_500_000), label=f"m{number:03}")
    seen: list[str] = []
    path: str | None = queue_path(queue)
    while path:
        page = operator.get(path).text
        seen += re.findall(r">(m\d{3})</a>", page)
        found = re.search(r'rel="next" href="([^"]+)"', page)
        path = found[1] if found else None
    assert seen == [f"m{number:03}" for number in range(5)]


def test_queues_are_filtered_sorted_and_paged(tmp_path: Path) -> None:
    with opened_place(tmp_path) as place, place.manager() as manager:
        count = limits.QUEUES_PAGE_COUNT + 5
        for number in range(count):
            manager.create_queue(rf"private$\n{number:03}")
        manager.create_queue(r"private$\special").send_many(["a"] * 3)
        manager.queue(r"private$\n007").send("b" * 1000)
        person = place.person()

        def names(path: str) -> list[str]:
            page = person.get(path).text
            return re.findall(
                r'<th scope="row" class="name wide"><a [^>]+>private\$\\<wbr>(\w+)', page
            )

        first = names("/queues")
        assert first == [f"n{number:03}" for number in range(limits.QUEUES_PAGE_COUNT)]
        assert names(f"/queues?from={limits.QUEUES_PAGE_COUNT}") == [
            *(f"n{number:03}" for number in range(limits.QUEUES_PAGE_COUNT, count)),
            "special",
        ]
        assert names("/queues?find=SPEC") == ["special"]
        assert names("/queues?sort=messages&down=1")[:2] == ["special", "n007"]
        assert names("/queues?sort=bytes&down=1")[:2] == ["n007", "special"]
        assert names("/queues?from=99999") == []
        assert "No queue has" in person.get("/queues?find=zzz").text


@pytest.mark.parametrize(
    "query", ["from=-1", "from=x", "sort=evil", "from=" + "9" * 50, "find=" + "a" * 999]
)
def test_what_makes_no_sense_behind_the_question_mark_does_no_harm(
    operator: Person, query: str
) -> None:
    assert operator.get(f"/queues?{query}").status_code == 200


# What needs somebody.


def test_the_overview_says_what_needs_somebody_and_what_it_waits_for(tmp_path: Path) -> None:
    with opened_place(tmp_path, transfer=False) as place, place.manager() as manager:
        person = place.person()
        assert "Nothing needs you." in person.get("/").text
        manager.queue(r"DIRECT=TCP:127.0.0.99\private$\orders").send("a")
        orders = manager.create_queue(r"private$\orders", transactional=True)
        orders.send(
            "late",
            transaction=SINGLE_MESSAGE,
            time_to_be_received_s=0,
            journal_on_failure=True,
        )
        transaction = manager.begin()
        orders.send("x", transaction=transaction)
        transaction.prepare()
        (stuck,) = manager.outgoing()
        said = text_of(person.get("/"))
        assert "1 message cannot leave for" in said
        assert stuck.explanation in said
        assert "1 dead letter" in said
        assert "1 transaction in doubt" in said
        said = text_of(person.get("/outgoing"))
        assert stuck.explanation in said


def test_a_raised_alarm_is_the_first_thing_that_needs_somebody(tmp_path: Path) -> None:
    deep = AlarmRule("deep", Measure.MESSAGES, threshold=1, clear=1)
    full = AlarmRule("full", Measure.QUOTA_PERCENT, threshold=90, clear=80)
    table = AlarmTable(look_s=1, rules=(deep, full))
    with opened_place(tmp_path, alarms=table) as place, place.manager() as manager:
        person = place.person()
        assert "Nothing needs you." in person.get("/").text
        assert "messages has not reached 1" in text_of(person.get("/status"))
        manager.create_queue(r"private$\orders").send("a")
        wait_for(lambda: manager.status().alarms[0].raised_count)
        said = text_of(person.get("/"))
        assert "Alarm deep" in said
        assert r"There are 1 messages in private$\orders, for" in said
        assert "Alarm full" not in said
        said = text_of(person.get("/status"))
        assert r"deep raised there are 1 messages in private$\orders" in said
        assert "full not raised" in said


def test_properties_and_rights_are_told_in_words(
    place: Place, operator: Person, queue: str
) -> None:
    with place.manager() as manager:
        manager.queue(queue).deny("user:70001", "send")
    said = text_of(operator.get(f"{queue_path(queue)}/properties"))
    assert "user:70001 denied send" in said
    assert "not needed" in said
    assert "Multicast address none" in said


def test_the_multicast_address_of_a_queue_is_shown(
    place: Place, operator: Person, queue: str
) -> None:
    with place.manager() as manager:
        manager.queue(queue).change(multicast_address="239.1.1.1:8001")
    said = text_of(operator.get(f"{queue_path(queue)}/properties"))
    assert "Multicast address 239.1.1.1:8001" in said


def test_a_body_of_an_unknown_type_is_bytes(place: Place, operator: Person, queue: str) -> None:
    with place.manager() as manager:
        manager.queue(queue).send(b"\x00\x01", body_type=BodyType.OBJECT_UNKNOWN)
        manager.queue(queue).send(b"\x00\x01", body_type=999_999)
    for path in message_paths(operator.get(queue_path(queue)).text):
        assert "00 01" in operator.get(path).text
