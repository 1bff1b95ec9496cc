"""`openmsmq report`: show reports that `openmsmq pipeline report` wrote. It needs no Spark.

A page is one file that works without a server, too. The server is for a computer that is reached
through a terminal only: it listens on this computer alone, and gives out nothing but the pages it
was told of.
"""

from __future__ import annotations

import html
import os
import signal
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Final, NoReturn
from urllib.parse import quote, unquote, urlsplit

import typer

from openmsmq.cli.views.console import fail

ADDRESS: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8801
PAGE_MAX_BYTES: Final = 64 * 1024 * 1024
"""A file that is larger is no report."""
PAGES_MAX_COUNT: Final = 1000
"""Pages of a directory that are listed: the first by name."""
SILENCE_MAX_S: Final = 10.0
"""How long a browser may be silent before its connection ends."""

# A page has a policy of its own, which says more. This forbids it to fetch anything even without.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

app: Final = typer.Typer(
    help="Show reports that `openmsmq pipeline report` wrote.", no_args_is_help=True
)


@app.callback()
def options() -> None:
    """Show reports that `openmsmq pipeline report` wrote."""


@app.command("serve")
def serve(
    place: Annotated[
        str,
        typer.Argument(metavar="PAGE", help="The page, or a directory of pages (*.html)."),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The TCP port; 0 takes a free one.")
    ] = DEFAULT_PORT,
) -> None:
    """Show a report, or a directory of them, to a browser on this computer, until Ctrl-C.

    From elsewhere, reach it through a tunnel: ssh -L 8801:127.0.0.1:8801 HOST.
    """
    if not os.path.exists(place):
        fail(f"{place} does not exist: make a report with openmsmq pipeline report.")
    try:
        server = ReportServer(Path(place), port)
    except OSError as error:
        fail(f"port {port} of {ADDRESS} cannot be used: {error.strerror}. --port 0 takes another.")
    with server:
        # Also where a shell that started it in the background has it ignore Ctrl-C.
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _stop)
            typer.echo(f"{place} is at {server.address}; Ctrl-C ends it")
            server.serve_forever(poll_interval=0.1)
        except _Stopped:
            typer.echo("ended")


class _Stopped(BaseException):
    """Somebody asked the process to end; the server goes on after an `Exception`."""


def _stop(*_: object) -> NoReturn:
    raise _Stopped


class ReportServer(ThreadingHTTPServer):
    """Gives out the pages of one place, on this computer only; made, it listens already."""

    daemon_threads = True

    def __init__(self, place: Path, port: int) -> None:
        self.place = place
        super().__init__((ADDRESS, port), _Handler)

    @property
    def address(self) -> str:
        """What to type into a browser."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def pages(self) -> Mapping[str, Path]:
        """Find the pages by their names; nothing else can be asked for."""
        if not self.place.is_dir():
            return {self.place.name: self.place}
        found = sorted(
            path
            for path in self.place.glob("*.html")
            # A link may lead anywhere.
            if path.is_file() and not path.is_symlink()
        )
        return {path.name: path for path in found[:PAGES_MAX_COUNT]}

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a browser that goes away in the middle is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: ReportServer
    server_version = "openmsmq"
    sys_version = ""
    timeout = SILENCE_MAX_S

    def do_GET(self) -> None:
        """Answer with a page, or with the list of them."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer without the page."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        # A page elsewhere may have its own name point here: it must not read ours.
        if self.headers.get("Host", "") not in self._own_hosts():
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        found = self._find(unquote(urlsplit(self.path).path).removeprefix("/"))
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        if with_body:
            self.wfile.write(found)

    def _own_hosts(self) -> tuple[str, ...]:
        return tuple(f"{host}:{self.server.server_port}" for host in (ADDRESS, "localhost"))

    def _find(self, name: str) -> bytes | None:
        pages = self.server.pages()
        if not name and len(pages) != 1:
            return _list_of(pages).encode()
        path = next(iter(pages.values())) if not name else pages.get(name)
        try:
            if path is None or path.stat().st_size > PAGE_MAX_BYTES:
                return None
            return path.read_bytes()
        except OSError:
            return None

    def end_headers(self) -> None:
        """Add what every answer says."""
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *values: object) -> None:
        """Write no log."""


def _list_of(pages: Mapping[str, Path]) -> str:
    rows = "".join(
        f'<li><a href="{html.escape(quote(name))}">{html.escape(name)}</a></li>' for name in pages
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Reports</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><style>'
        ":root{color-scheme:light dark} body{font:1rem/1.6 system-ui,sans-serif;margin:2rem}"
        f"</style></head><body><h1>Reports</h1><ul>{rows}</ul>"
        f"{'' if rows else '<p>There are none here yet.</p>'}</body></html>"
    )
