"""`openmsmq report serve`: pages for a browser on this computer, and nothing else."""

from __future__ import annotations

import contextlib
import http.client
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from openmsmq.cli.app import app
from openmsmq.cli.tools.report import PAGE_MAX_BYTES, PAGES_MAX_COUNT, ReportServer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "outside.html").write_text("outside")
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "friday.html").write_text("<p>Friday")
    (pages / "<b>&quot;.html").write_text("<p>odd")
    (pages / "notes.txt").write_text("notes")
    (pages / "link.html").symlink_to(tmp_path / "outside.html")
    return pages


@pytest.fixture
def server(folder: Path) -> Iterator[ReportServer]:
    with ReportServer(folder, 0) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(
    server: ReportServer, path: str, *, method: str = "GET", host: str | None = None
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, answer.headers


def test_a_directory_lists_its_pages_and_gives_them(server: ReportServer) -> None:
    status, text, headers = ask(server, "/")
    assert status == 200
    assert '<a href="friday.html">friday.html</a>' in text
    assert "&lt;b&gt;&amp;quot;.html" in text
    assert "link.html" not in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert ask(server, "/friday.html")[:2] == (200, "<p>Friday")
    assert ask(server, "/%3Cb%3E%26quot%3B.html")[:2] == (200, "<p>odd")
    assert ask(server, "/friday.html", method="HEAD")[:2] == (200, "")


@pytest.mark.parametrize(
    "path",
    [
        *("/notes.txt", "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "//etc/passwd"),
        *("/link.html", "/../outside.html", "/friday.html/", "/%00", "/pages/friday.html"),
    ],
)
def test_nothing_but_the_pages_can_be_asked_for(server: ReportServer, path: str) -> None:
    status, text, _ = ask(server, path)
    assert status == 404
    assert "secret" not in text
    assert "outside" not in text


def test_other_methods_and_other_names_of_this_computer_are_refused(server: ReportServer) -> None:
    assert ask(server, "/friday.html", method="POST")[0] == 501
    assert ask(server, "/friday.html", host="evil.example")[0] == 421
    port = server.server_port
    assert ask(server, "/friday.html", host=f"localhost:{port}")[0] == 200
    assert server.server_address[0] == "127.0.0.1"


def test_a_file_is_shown_at_once_and_only_it(folder: Path) -> None:
    with ReportServer(folder / "friday.html", 0) as server:
        assert list(server.pages()) == ["friday.html"]


def test_pages_have_limits(folder: Path, server: ReportServer) -> None:
    with open(folder / "huge.html", "wb") as file:
        file.truncate(PAGE_MAX_BYTES + 1)
    assert ask(server, "/huge.html")[0] == 404
    for number in range(PAGES_MAX_COUNT + 1):
        (folder / f"{number:04}.html").touch()
    assert len(server.pages()) == PAGES_MAX_COUNT


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_and_ends_when_asked(folder: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "openmsmq.cli.app", "report", "serve", "--port", "0"]
    with (
        subprocess.Popen(
            [*command, str(folder / "friday.html")], stdout=subprocess.PIPE, text=True
        ) as process,
        contextlib.ExitStack() as at_the_end,
    ):
        at_the_end.callback(process.kill)
        assert process.stdout is not None
        said = process.stdout.readline()
        url = next(word for word in said.split() if word.startswith("http:")).strip(";")
        address = urlsplit(url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"<p>Friday"
        connection.close()
        process.send_signal(how)
        assert process.wait(10) == 0
        assert process.stdout.read() == "ended\n"


def test_what_cannot_be_served_is_refused_with_a_sentence(folder: Path) -> None:
    result = CliRunner().invoke(app, ["report", "serve", str(folder / "missing.html")])
    assert result.exit_code == 2
    assert "does not exist: make a report with openmsmq pipeline report" in result.stderr
    with ReportServer(folder, 0) as server:
        arguments = ["report", "serve", str(folder), "--port", str(server.server_port)]
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "--port 0 takes another" in result.stderr
