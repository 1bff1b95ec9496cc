"""The `openmsmq` command: its groups, and what happens when one fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from openmsmq import __version__
from openmsmq.cli.enterprise import directory, route
from openmsmq.cli.messages import certificate, receive, send
from openmsmq.cli.options.connecting import EXIT_FAILED, TOKEN_VARIABLE, Target
from openmsmq.cli.pipeline import app as pipeline
from openmsmq.cli.queues import acl, journal, outgoing, query, queue, transaction
from openmsmq.cli.service import key, peer, serve, status, store, token
from openmsmq.cli.tools import packet, report, sim
from openmsmq.cli.views.console import say_error

EXIT_UNEXPECTED: Final = 70
DEBUG_VARIABLE: Final = "OPENMSMQ_DEBUG"
PROGRAM: Final = "openmsmq"

app: Final = typer.Typer(
    name=PROGRAM,
    help="Microsoft Message Queuing on Linux and anywhere Python runs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("status")(status.status)
app.add_typer(queue.app, name="queue")
app.command("send")(send.send)
app.command("receive")(receive.receive)
app.command("peek")(receive.peek)
app.command("journal")(journal.journal)
app.command("deadletter")(journal.deadletter)
app.add_typer(outgoing.app, name="outgoing")
app.command("online")(outgoing.online)
app.command("offline")(outgoing.offline)
app.add_typer(transaction.app, name="transaction")
app.add_typer(query.app, name="query")
app.add_typer(acl.manager_app, name="acl")
app.add_typer(token.app, name="token")
app.add_typer(certificate.app, name="certificate")
app.add_typer(key.app, name="key")
app.add_typer(peer.app, name="peer")
app.command("whoami")(acl.whoami)
app.add_typer(directory.app, name="directory")
app.add_typer(route.app, name="route")
app.add_typer(store.app, name="store")
app.add_typer(packet.app, name="packet")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(report.app, name="report")
app.add_typer(sim.app, name="sim")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"openmsmq {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    qm: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            envvar="OPENMSMQ_QM",
            help="The queue manager: host, host:port, or the path of its Unix socket.",
        ),
    ] = "127.0.0.1",
    token_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            envvar="OPENMSMQ_TOKEN_FILE",
            help=f"File with the token that the queue manager asks for; or set {TOKEN_VARIABLE}.",
        ),
    ] = "",
    tls: Annotated[
        bool,
        typer.Option(
            "--tls",
            envvar="OPENMSMQ_TLS",
            help="Connect with TLS, trusting the authorities of this computer.",
        ),
    ] = False,
    ca: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            envvar="OPENMSMQ_CA",
            help="Connect with TLS, trusting the certificates in this file.",
        ),
    ] = "",
    cert: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            envvar="OPENMSMQ_CERT",
            help="Certificate to show instead of a token, with its key, in PEM; needs TLS.",
        ),
    ] = "",
    key: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            envvar="OPENMSMQ_KEY",
            help="Private key of --cert, if it is in a file of its own.",
        ),
    ] = "",
    version: Annotated[  # noqa: ARG001 -- its callback does the work
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and stop."
        ),
    ] = False,
) -> None:
    """Microsoft Message Queuing on Linux and anywhere Python runs."""
    context.obj = Target(qm, token_file, tls, ca, cert, key)


def main() -> None:
    """Run the command line; a person never sees a traceback unless they ask for it."""
    for output in (sys.stdout, sys.stderr):
        # What a terminal cannot show becomes a question mark, not a failure.
        if output is not None:
            output.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = _command()(prog_name=PROGRAM, standalone_mode=False)
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        code = _explain(error)
    sys.exit(code if isinstance(code, int) else 0)


def _command() -> Callable[..., Any]:
    """Make the command; the help of an option that takes no value shows none."""
    made = typer.main.get_command(app)
    left: list[Any] = [made]
    while left:
        command = left.pop()
        for option in command.get_params(typer.Context(command)):
            if getattr(option, "is_flag", False) and option.metavar is None:
                option.metavar = ""
        left.extend(getattr(command, "commands", {}).values())
    return made


def _explain(error: Exception) -> int:
    """Say in one sentence what went wrong; give the exit code."""
    if isinstance(error, typer.Abort):
        say_error("stopped.")
        return EXIT_FAILED
    # What typer raises for wrong arguments, whichever version of it this is.
    if hasattr(error, "format_message"):
        if type(error).__name__ != "NoArgsIsHelpError":
            context = getattr(error, "ctx", None)
            path = PROGRAM if context is None else context.command_path
            say_error(f"{_sentence(error.format_message())} {path} --help says more.")
        return int(getattr(error, "exit_code", EXIT_FAILED))
    if isinstance(error, OSError) and error.strerror:
        say_error(f"the operating system refused: {error.strerror}.")
        return EXIT_FAILED
    say_error(
        f"this should not have happened ({type(error).__name__}: {error}). Please report it "
        f"with what you did and the output of the same command with {DEBUG_VARIABLE}=1."
    )
    return EXIT_UNEXPECTED


def _sentence(text: str) -> str:
    # Pydantic, below typer, puts these words before its own.
    text = " ".join(text.replace("Value error, ", "").split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


if __name__ == "__main__":
    main()
