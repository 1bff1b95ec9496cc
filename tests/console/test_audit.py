"""The audit log and the rights of a queue, on pages of the console."""

from __future__ import annotations

from openmsmq.console import limits
from tests.console.people import Person, Place, queue_path, text_of


def test_what_somebody_did_is_in_the_audit_log(place: Place, operator: Person, queue: str) -> None:
    operator.press(f"{queue_path(queue)}/purge", typed=queue)
    page = text_of(operator.get("/audit", params={"find": queue}))
    assert "purge" in page
    assert "token token-" in page
    assert "done" in page
    assert "There is nothing that fits" in text_of(operator.get("/audit?find=never-was-there"))
    assert place


def test_a_name_in_the_audit_log_is_no_script(operator: Person) -> None:
    operator.send(
        f"{queue_path('private$' + chr(92) + '<script>alert(1)</script>')}/purge", {"typed": "x"}
    )
    assert "<script>alert" not in operator.get("/audit").text


def test_the_audit_log_has_pages(place: Place, operator: Person, queue: str) -> None:
    with place.manager() as manager:
        for number in range(limits.AUDIT_PAGE_COUNT + 5):
            manager.queue(queue).change(label=f"label {number}")
    first = operator.get("/audit", params={"find": queue})
    assert "50 lines" in text_of(first)
    (before,) = [
        part
        for part in first.text.split('"')
        if part.startswith("/audit?find=") and "before=" in part
    ]
    second = text_of(operator.get(before.replace("&amp;", "&")))
    assert "label 0" in second
    assert "label 54" in text_of(first)


def test_rights_are_changed_and_said_in_words(operator: Person, queue: str) -> None:
    path = f"{queue_path(queue)}/rights"
    assert "send messages" in text_of(operator.get(path))
    fields = {"who": "user:70001", "action": "deny", "right-receive": "yes", "right-peek": "yes"}
    said = text_of(operator.press(path, **fields))
    assert "user:70001 may no longer: receive messages, look at messages." in said
    assert "user:70001 may not receive messages" in said
    said = text_of(operator.press(path, who="user:70001", action="revoke"))
    assert "may not receive" not in said


def test_what_makes_no_sense_changes_no_rights(operator: Person, queue: str) -> None:
    path = f"{queue_path(queue)}/rights"
    for fields, words in (
        ({"who": "nobody-here", "action": "grant", "right-send": "yes"}, "is nobody"),
        ({"who": "", "action": "grant", "right-send": "yes"}, "Say whose rights"),
        ({"who": "everyone", "action": "grant"}, "at least one right"),
        ({"who": "everyone", "action": "evil", "right-send": "yes"}, "Choose whether"),
    ):
        page = operator.press(path, **fields)
        assert page.status_code == 400
        assert words in text_of(page)
