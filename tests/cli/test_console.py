"""`openmsmq console`, and `openmsmq serve --console`: what they print, refuse, and how they end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import openmsmq
from tests.cli.conftest import ADDRESSES, CommandLine, ServerProcess, command_line, environment
from tests.console.people import forms, text_of

WAIT_S = 20.0
PAUSE_S = 0.05


@contextlib.contextmanager
def console(*options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Run the command; gives the process, its address and its link."""
    process = subprocess.Popen(
        command_line(*options), env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, *read_links(process)
    finally:
        process.terminate()
        process.wait(WAIT_S)
        process.stdout.close()


def read_links(process: subprocess.Popen[str]) -> tuple[str, str]:
    assert process.stdout is not None
    first, second = process.stdout.readline(), process.stdout.readline()
    address = re.search(r"console at (\S+)", first)
    link = re.search(r"sign in once, as the user who started it: (\S+)", second)
    assert address, first
    assert link, second
    return address[1], link[1]


def fetch(url: str, **options: object) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10, **options) as answer:  # type: ignore[arg-type]
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that processes do on their own."""
    for _ in range(round(WAIT_S / PAUSE_S)):
        if condition():
            return
        time.sleep(PAUSE_S)
    pytest.fail("it took too long")


def answers(url: str) -> bool:
    try:
        return fetch(url)[0] == 200
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_it_prints_where_it_is_and_a_link_that_signs_in(server: ServerProcess) -> None:
    with console("console", "--listen", "127.0.0.1:0", "--connect", server.address) as (
        process,
        address,
        link,
    ):
        assert link.startswith(f"{address}sign-in/")
        assert fetch(f"{address}health/live") == (200, "ok\n")
        assert fetch(f"{address}health/ready") == (200, "ready\n")
        assert fetch(link)[0] == 200
        assert fetch(f"{address}metrics")[0] == 404
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0


def test_metrics_are_told_to_who_shows_their_token(server: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a" * 40)
    options = ("--listen", "127.0.0.1:0", "--metrics-token-file", str(file))
    with console("--qm", server.address, "console", *options) as (_, address, _link):
        assert fetch(f"{address}metrics")[0] == 401
        for token, code in (("a" * 40, 200), ("a" * 39, 401), ("", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            request = urllib.request.Request(f"{address}metrics", headers=headers)
            status, text = fetch(request)  # type: ignore[arg-type]
            assert status == code
            assert ("openmsmq_up" in text) == (code == 200)


def test_metrics_are_told_on_this_computer_if_somebody_says_so(server: ServerProcess) -> None:
    options = ("--listen", "127.0.0.1:0", "--metrics-on-loopback")
    with console("--qm", server.address, "console", *options) as (_, address, _link):
        assert fetch(f"{address}metrics")[0] == 200


def test_beyond_this_computer_it_wants_tls_and_says_why(offline: CommandLine) -> None:
    for place in ("0.0.0.0:0", "[::]:0", "192.0.2.1:80"):
        said = offline.refused("console", "--listen", place, code=2)
        assert "without TLS everybody on the way could read the token" in said
        assert "--tls-cert FILE" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "127.0.0.1:http"), "no address to listen on"),
        (("--listen", "127.0.0.1:99999"), "no address to listen on"),
        (("--listen", "192.0.2.1:80", "--without-tls"), "cannot be listened on"),
        (("--tls-key", "key.pem"), "--tls-key needs --tls-cert"),
        (("--tls-cert", "nowhere.pem"), "nowhere.pem is no file"),
        (("--metrics-token-file", "nowhere"), "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(
    offline: CommandLine, options: tuple[str, ...], words: str
) -> None:
    assert words in offline.refused("console", *options, code=2)


def test_a_short_token_for_metrics_is_refused(offline: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    said = offline.refused("console", "--metrics-token-file", str(file), code=2)
    assert "it needs 32" in said


def certificate(folder: Path) -> Path:
    file = folder / "console.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"), "-days", "2"),
        ],
        check=True,
        capture_output=True,
    )
    file.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return file


def test_with_a_certificate_it_speaks_tls_and_its_cookie_is_for_tls_alone(
    server: ServerProcess, tmp_path: Path
) -> None:
    file = certificate(tmp_path)
    options = ("--listen", "127.0.0.1:0", "--tls-cert", str(file))
    with console("--qm", server.address, "console", *options) as (_, address, _link):
        place = address.replace("127.0.0.1", "localhost")
        assert place.startswith("https://")
        context = ssl.create_default_context(cafile=str(file))
        with urllib.request.urlopen(f"{place}sign-in", context=context, timeout=10) as answer:
            cookie = answer.headers["set-cookie"]
            assert answer.headers["strict-transport-security"]
        assert cookie.startswith("__Host-openmsmq-console=")
        assert "Secure" in cookie


def test_a_certificate_that_is_none_is_refused(offline: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    file.write_text("nonsense")
    options = ("--listen", "127.0.0.1:0", "--tls-cert", str(file))
    assert "cannot be used" in offline.refused("console", *options, code=2)


# Beside a server.


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[ServerProcess, str, str]]:
    """A server with a console; gives where that is, and its link."""
    port = free_port()
    started = ServerProcess(folder, f"--console=127.0.0.1:{port}", *options)
    try:
        address, link = read_links(started.process)
        yield started, address, link
    finally:
        if started.process.poll() is None:
            started.stop()


def console_of(server: ServerProcess) -> int:
    """The process of the console that a server has started."""
    path = Path(f"/proc/{server.process.pid}/task")
    children = [
        child
        for task in path.iterdir()
        for child in (task / "children").read_text(encoding="ascii").split()
    ]
    found = [
        int(child)
        for child in children
        if b"console" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    return found[0] if found else 0


def test_a_server_has_a_console_beside_it_and_stops_it(tmp_path: Path) -> None:
    with served(tmp_path / "a") as (server, address, link):
        assert fetch(f"{address}health/ready") == (200, "ready\n")
        assert fetch(link)[0] == 200
        assert console_of(server)
        server.stop()
        assert not answers(f"{address}health/live")


def test_a_console_that_dies_is_started_again_and_the_server_does_not_mind(tmp_path: Path) -> None:
    with served(tmp_path / "a") as (server, address, _):
        before = console_of(server)
        os.kill(before, signal.SIGKILL)
        until(lambda: console_of(server) not in (0, before))
        until(lambda: answers(f"{address}health/ready"))


def test_a_console_does_not_outlive_a_server_that_is_killed(tmp_path: Path) -> None:
    with served(tmp_path / "a") as (server, address, _):
        server.process.kill()
        server.process.wait()
        until(lambda: not answers(f"{address}health/live"))
        assert server.process.stdout is not None
        server.process.stdout.close()


def test_a_server_refuses_a_console_for_everybody_without_tls(offline: CommandLine) -> None:
    said = offline.refused("serve", "--data=x", "--console=0.0.0.0:1880", code=2)
    assert "without TLS" in said
    said = offline.refused(
        "serve", "--data=x", "--console=127.0.0.1:1", "--api-socket=none", code=2
    )
    assert "Unix socket" in said


# The other queue managers of the directory.


@contextlib.contextmanager
def signed_in(address: str, link: str) -> Iterator[httpx.Client]:
    """A browser of who has the link."""
    origin = {"Origin": address.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as browser:
        hidden = forms(browser.get(link)).hidden
        assert browser.post("sign-in", data=hidden, headers=origin).status_code == 303
        yield browser


def self_signed(folder: Path, address: str) -> str:
    """A certificate for an address, in a file with its key."""
    file = folder / f"{address}.pem"
    key = folder / f"{address}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=beta", "-addext"),
            *(f"subjectAltName=IP:{address}", "-keyout", str(key), "-out", str(file)),
        ],
        check=True,
        capture_output=True,
    )
    file.write_text(file.read_text() + key.read_text())
    return str(file)


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
def test_the_console_of_a_server_asks_the_others_of_the_directory(
    tmp_path: Path, is_tls: bool
) -> None:
    beta_address = next(ADDRESSES)
    asks = ["--console-ask-others", "--directory-server"]
    serves = ["--name=BETA", f"--address={beta_address}"]
    if is_tls:
        certificate = self_signed(tmp_path, beta_address)
        asks.append(f"--console-others-tls={certificate}")
        # Over TLS it is called by its name, which it has to prove.
        serves += [f"--tls-cert={certificate}", f"--qualified-name={beta_address}"]
    with served(tmp_path / "a", *asks) as (alpha, address, link):
        beta = ServerProcess(tmp_path / "b", *serves, f"--directory={alpha.address}")
        try:
            with openmsmq.connect(alpha.address) as manager:
                until(lambda: manager.read_directory().manager_named("BETA") is not None)
            with openmsmq.connect(str(tmp_path / "b/api.sock")) as manager:
                sent = manager.create_queue(r"private$\there").send("x")
            with signed_in(address, link) as browser:
                said = text_of(browser.get("path", params={"id": str(sent)}))
                assert r"It is in private$\there of BETA." in said
                assert "BETA up It answers" in text_of(browser.get("map"))
        finally:
            beta.stop()


def test_a_console_that_asks_nobody_says_how_it_would(tmp_path: Path) -> None:
    with served(tmp_path / "a") as (_, address, link), signed_in(address, link) as browser:
        assert "a server with console_ask_others" in text_of(
            browser.get("path", params={"id": "0" * 40})
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--console-ask-others"], "console is not"),
        (["--console=127.0.0.1:1", "--console-others-tls=system"], "nobody would be asked"),
        (
            ["--console=127.0.0.1:1", "--console-ask-others", "--console-others-tls=nowhere.pem"],
            "is no file",
        ),
    ],
)
def test_options_about_others_that_cannot_be_meant_are_refused(
    offline: CommandLine, tmp_path: Path, options: list[str], words: str
) -> None:
    place = (f"--data={tmp_path / 'a'}", f"--address={next(ADDRESSES)}", "--log-level=error")
    said = offline.refused("serve", *place, *options, code=2)
    assert words in said
