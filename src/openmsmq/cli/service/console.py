"""`openmsmq console`: pages in a browser for those who operate a queue manager."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from openmsmq.cli.options.connecting import target_of
from openmsmq.cli.views.console import fail

if TYPE_CHECKING:
    from openmsmq.console.server import ConsoleServer

_DEFAULT_LISTEN: Final = "127.0.0.1:1880"
_METRICS_TOKEN_MIN_CHARACTERS: Final = 32
"""Nobody guesses a longer one."""


def console(
    context: typer.Context,
    listen: Annotated[
        str,
        typer.Option(metavar="ADDRESS:PORT", help="Where browsers reach it; port 0 is a free one."),
    ] = _DEFAULT_LISTEN,
    connect: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="The queue manager, in place of --qm before the command."
        ),
    ] = "",
    tls_cert: Annotated[
        str, typer.Option(metavar="FILE", help="Certificate chain in PEM; with it, TLS only.")
    ] = "",
    tls_key: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Private key in PEM, if it is not in the certificate's file."
        ),
    ] = "",
    host: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Name under which browsers reach it, beside its address. May be repeated.",
        ),
    ] = [],  # noqa: B006 -- typer copies it
    without_tls: Annotated[
        bool,
        typer.Option(
            "--without-tls",
            help="Let other computers in without TLS: who is on the way reads tokens and messages.",
        ),
    ] = False,
    metrics_token_file: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="File with a token; who shows it as Bearer reads /metrics."
        ),
    ] = "",
    metrics_on_loopback: Annotated[
        bool,
        typer.Option("--metrics-on-loopback", help="Let everybody on this computer read /metrics."),
    ] = False,
    ask_others: Annotated[
        bool,
        typer.Option(
            "--ask-others",
            help="Ask the other queue managers of the directory about messages and their state, as "
            "who is signed in. A token is shown to them only over TLS, or on this computer.",
        ),
    ] = False,
    until_input_ends: Annotated[bool, typer.Option("--until-input-ends", hidden=True)] = False,
) -> None:
    """Show the queue manager in a browser, until SIGTERM or Ctrl-C ends it.

    It prints a link that signs in once, as you. Others sign in with a token of the queue manager,
    and can do what that token may.
    """
    try:
        # Other commands do not pay for loading a web server.
        from openmsmq.console.config import (
            BadConfig,
            ConsoleConfig,
            check_listen,
            own_settings,
            read_listen,
        )
        from openmsmq.console.server import ConsoleServer
        from openmsmq.runtime.operating_system.socket_owner import owner_of
    except ModuleNotFoundError as error:
        fail(f"the console needs {error.name}: pip install 'openmsmq[console]'.")
    target = target_of(context)
    if connect:
        target = msgspec.structs.replace(target, address=connect)
    if tls_key and not tls_cert:
        fail("--tls-key needs --tls-cert.")
    for file in (tls_cert, tls_key):
        if file and not Path(file).is_file():
            fail(f"{file} is no file.")
    metrics_token = _metrics_token(metrics_token_file) if metrics_token_file else ""
    try:
        address, port = read_listen(listen)
        check_listen(address, has_tls=bool(tls_cert), allows_plain=without_tls)
        server = ConsoleServer(
            ConsoleConfig(
                host=address,
                port=port,
                own=own_settings(target.settings()),
                tls_cert=tls_cert,
                tls_key=tls_key,
                names=tuple(host),
                metrics_token=metrics_token,
                metrics_on_loopback=metrics_on_loopback,
                asks_others=ask_others,
            ),
            owner_of=owner_of,
        )
    except BadConfig as error:
        fail(f"{error}.")
    server.run(_say_ready, ends_with_input=until_input_ends)


def _metrics_token(file: str) -> str:
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"the token of the metrics in {file} cannot be read: {error}.")
    if len(token) < _METRICS_TOKEN_MIN_CHARACTERS:
        fail(
            f"the token of the metrics in {file} has {len(token)} characters: it needs "
            f"{_METRICS_TOKEN_MIN_CHARACTERS}, such as openssl rand -hex 32 makes."
        )
    return token


def _say_ready(server: ConsoleServer) -> None:
    typer.echo(f"console at {server.address}")
    typer.echo(f"sign in once, as the user who started it: {server.link}")
