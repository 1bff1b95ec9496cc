"""What other sites, other names and strange paths get from the console: nothing."""

from __future__ import annotations

import contextlib
import socket
from urllib.parse import quote

import httpx
import pytest

import openmsmq
from openmsmq.console import limits
from openmsmq.console.asking import manager_views
from openmsmq.console.names import BadSegment, name_in, number_in, segment
from openmsmq.console.pages import PAGES
from tests.console.people import Person, Place, forms, queue_path

FORMS = [page.path for page in PAGES if page.act is not None]
SHOWN = [page.path for page in PAGES]


def filled(path: str, queue: str) -> str:
    """The path of a page, with something in each of its places."""
    return path.format(
        queue=segment(queue), message="1", unit="0" * 32, connection="1", session="1"
    )


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", "/static/console.css", "/health/live", "/nowhere"]
)
def test_every_answer_forbids_frames_guessing_and_other_sites(operator: Person, path: str) -> None:
    headers = operator.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


def test_pages_are_kept_by_no_cache(operator: Person) -> None:
    assert operator.get("/queues").headers["cache-control"] == "no-store"


def test_no_page_has_a_script_or_style_of_its_own_or_names_another_site(operator: Person) -> None:
    for path in ("/", "/queues", "/outgoing", "/dead-letters", "/transactions", "/status"):
        text = operator.get(path).text
        assert "<style" not in text
        assert " style=" not in text
        assert " onclick" not in text
        assert text.count("<script") == text.count('<script src="/static/') == 1
        assert "http://" not in text
        assert "https://" not in text


def test_what_is_said_after_a_defect_has_the_headers_and_no_traceback(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: object) -> None:
        raise RuntimeError("secret")

    # Of its own, because the server ends the connection then.
    person = place.person()
    monkeypatch.setattr(manager_views, "overview", broken)
    page = person.get("/")
    assert page.status_code == 500
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "should not have happened" in page.text
    assert "secret" not in page.text


# Names that lead here.


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:1880", "127.0.0.1.evil.example", "localhost.evil", ""]
)
def test_under_another_name_nothing_is_told(operator: Person, host: str) -> None:
    answer = operator.get("/", headers={"Host": host})
    assert answer.status_code == 421
    assert "ALPHA" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:7"])
def test_a_tunnel_may_lead_to_another_port(operator: Person, host: str) -> None:
    assert operator.get("/", headers={"Host": host}).status_code == 200


def test_a_request_without_a_host_is_refused(place: Place) -> None:
    host, port = place.console.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert plain.recv(100).split()[1] in (b"400", b"421")


# Forms of others.


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    "change",
    [
        {"form_token": ""},
        {"form_token": "x" * 43},
        {"form_token": None},
    ],
    ids=["empty", "wrong", "missing"],
)
def test_a_form_without_the_token_of_the_session_does_nothing(
    operator: Person, queue: str, path: str, change: dict[str, str | None]
) -> None:
    fields = {"typed": queue, **{key: value for key, value in change.items() if value is not None}}
    answer = operator.send(filled(path, queue), fields)
    assert answer.status_code == 403
    assert "not of your session" in answer.text


@pytest.mark.parametrize("path", [*FORMS, "/sign-in", "/sign-out"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:9"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
    ids=lambda headers: " ".join(map("=".join, headers.items())),
)
def test_a_form_of_another_site_does_nothing_whatever_it_knows(
    operator: Person, queue: str, path: str, headers: dict[str, str]
) -> None:
    fields = {"form_token": operator.form_token}
    answer = operator.send(filled(path, queue), fields, **headers)
    assert answer.status_code == 403
    assert "another site" in answer.text
    assert operator.get("/").status_code == 200


def test_the_token_of_one_session_is_no_good_in_another(place: Place, queue: str) -> None:
    one, other = place.person(), place.person()
    answer = one.send(
        f"{queue_path(queue)}/purge", {"form_token": other.form_token, "typed": queue}
    )
    assert answer.status_code == 403


@pytest.mark.parametrize("path", SHOWN)
def test_looking_at_a_page_changes_nothing(
    place: Place, operator: Person, ledger: str, path: str
) -> None:
    with place.manager() as manager:
        manager.queue(ledger).send("a", transaction=openmsmq.SINGLE_MESSAGE)
        operator.get(filled(path, ledger) + f"?queue=system$;deadxact&typed={quote(ledger)}")
        assert manager.queue(ledger).count() == 1


def test_another_site_cannot_load_pages_and_may_link_to_them(operator: Person) -> None:
    site = {"Sec-Fetch-Site": "cross-site"}
    assert operator.get("/", headers={**site, "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    link = {**site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert operator.get("/", headers=link).status_code == 200
    frame = {**site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    assert operator.get("/", headers=frame).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_not_answered(operator: Person, method: str) -> None:
    assert operator.browser.request(method, "/queues").status_code == 405


# Paths.


@pytest.mark.parametrize(
    "name",
    [r"private$\a", r"private$\a;journal", "..", "/", "a/b", "DIRECT=OS:x\\y", "ü\u202e", "%2e%2e"],
)
def test_a_name_survives_as_one_part_of_a_path(name: str) -> None:
    part = segment(name)
    assert part.replace("-", "").replace("_", "").isalnum()
    assert name_in(part) == name


@pytest.mark.parametrize(
    "part", ["", "..", "=", "a", "YQ==", "YR", "Y Q", "%2e", "YQ\n", "x" * 4000, "gA", "ä"]
)
def test_no_other_spelling_of_a_name_is_read(part: str) -> None:
    with pytest.raises(BadSegment):
        name_in(part)


@pytest.mark.parametrize("part", ["", "-1", "01", "+1", "1.0", "٣", "9" * 30, str(1 << 63), "0x1"])
def test_no_other_spelling_of_a_number_is_read(part: str) -> None:
    with pytest.raises(BadSegment):
        number_in(part)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/",
        "/queues/../../etc/passwd",
        "/queues/%2e%2e",
        "/queues/..%5c..%5c",
        "/queues/cHJpdmF0ZSRcYQ/messages/..",
        "/queues/cHJpdmF0ZSRcYQ/messages/1%00",
        "/transactions/../commit",
        "//evil.example/",
    ],
)
def test_tricks_with_paths_lead_nowhere(place: Place, operator: Person, path: str) -> None:
    # As it is, without the tidying that a client does.
    request = operator.browser.build_request("GET", "/")
    request.url = httpx.URL(place.console.address, raw_path=path.encode())
    answer = operator.browser.send(request)
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert "import" not in answer.text


def test_a_queue_that_is_not_there_is_not_there(operator: Person) -> None:
    answer = operator.get(queue_path(r"private$\nowhere"))
    assert answer.status_code == 404
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in answer.text


# Sizes.


def test_a_form_that_is_too_long_is_not_read(operator: Person, queue: str) -> None:
    path = f"{queue_path(queue)}/send"
    answer = operator.send(path, {"body": "x" * limits.FORM_MAX_BYTES})
    assert answer.status_code == 413


def test_all_forms_together_have_so_much_room(
    operator: Person, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{queue_path(queue)}/send"
    hidden = forms(operator.get(path)).hidden
    form = {**hidden, "form": "text", "priority": "3", "body": "x" * 100_000}
    host, _, port = operator.console.address.rpartition("/")[2].partition(":")
    monkeypatch.setattr(limits, "FORMS_MAX_BYTES", 150_000)
    cookie = "; ".join(f"{name}={value}" for name, value in operator.browser.cookies.items())
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        f"Cookie: {cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        "Content-Length: 200000\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), 10) as slow:
        slow.sendall(head.encode() + b"x" * 100_000)
        answer = operator.send(path, form)
        for _ in range(500):
            if answer.status_code == 503:
                break
            answer = operator.send(path, form)
        assert "no room" in answer.text
    # Whoever hangs up leaves the room to others.
    for _ in range(500):
        answer = operator.send(path, form)
        if answer.status_code == 303:
            return
    pytest.fail(answer.text)


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out"])
def test_who_is_not_signed_in_sends_short_forms_only(place: Place, path: str) -> None:
    # Each letter that is written out takes time to read, and nobody has said who he is.
    answer = Person(place.console).send(path, {"token": "é" * limits.STRANGERS_FORM_MAX_BYTES})
    assert answer.status_code == 413


def test_a_form_with_very_many_fields_is_refused(operator: Person, queue: str) -> None:
    fields = {f"f{number}": "" for number in range(limits.FORM_MAX_FIELDS + 1)}
    assert operator.send(f"{queue_path(queue)}/send", fields).status_code == 400


@pytest.mark.parametrize(
    "kind", ["multipart/form-data; boundary=x", "application/json", "text/plain"]
)
def test_only_forms_of_ours_are_read(operator: Person, queue: str, kind: str) -> None:
    answer = operator.browser.post(
        f"{queue_path(queue)}/send",
        content=b"form_token=x",
        headers={**operator.origin, "Content-Type": kind},
    )
    assert answer.status_code == 415


def test_bytes_that_are_no_form_are_refused(operator: Person, queue: str) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = operator.browser.post(
        f"{queue_path(queue)}/send", content=b"a=%ff&\xff", headers={**operator.origin, **kind}
    )
    assert answer.status_code == 400


def test_the_sign_in_needs_its_own_form(place: Place) -> None:
    person = Person(place.console)
    assert person.send("/sign-in", {"token": place.token()}).status_code == 403
    page = person.get("/sign-in")
    fields = {**forms(page).hidden, "form_token": "x", "token": place.token()}
    assert person.send("/sign-in", fields).status_code == 403
    assert person.get("/").status_code == 303


# Connections.

SLOW = (
    b"",
    b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
    b"Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 100\r\n\r\ntoken=",
)


@pytest.mark.parametrize("said", SLOW, ids=["nothing", "half a head", "half a form"])
def test_who_opens_all_connections_and_says_little_keeps_nobody_out(
    place: Place, operator: Person, said: bytes
) -> None:
    cookies = dict(operator.browser.cookies)
    host, _, port = place.console.address.rpartition("/")[2].partition(":")
    with contextlib.ExitStack() as opened:
        held = []
        for _ in range(limits.CONNECTIONS_MAX_COUNT + 20):
            line = opened.enter_context(socket.create_connection((host, int(port)), 10))
            line.sendall(said)
            held.append(line)
        for _ in range(3):
            # Each is a browser that comes now.
            for path in ("/health/live", "/queues"):
                page = httpx.get(f"{place.console.address}{path}", cookies=cookies, trust_env=False)
                assert page.status_code == 200
        # The first ones gave way.
        held[0].settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            assert held[0].recv(1) == b""
