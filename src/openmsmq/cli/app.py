"""The `openmsmq` command: its groups, and what happens when one fails."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from openmsmq import __version__
from openmsmq.cli.enterprise import directory, route
from openmsmq.cli.messages import certificate, message, receive, send
from openmsmq.cli.operating import config, log
from openmsmq.cli.options.connecting import (
    EXIT_FAILED,
    PASSWORD_VARIABLE,
    REMOTE_COMMANDS,
    TOKEN_VARIABLE,
    Target,
)
from openmsmq.cli.pipeline import app as pipeline
from openmsmq.cli.queues import acl, definitions, journal, outgoing, query, queue, transaction
from openmsmq.cli.service import (
    backup,
    connection,
    console,
    failover,
    key,
    metrics,
    peer,
    sequence,
    serve,
    session,
    status,
    store,
    token,
    user,
)
from openmsmq.cli.tools import packet, report, sim
from openmsmq.cli.views.console import fail, say_error

EXIT_UNEXPECTED: Final = 70
DEBUG_VARIABLE: Final = "OPENMSMQ_DEBUG"
PROGRAM: Final = "openmsmq"
_REMOTE_GROUPS: Final = ("status", "queue", "outgoing", "online", "offline")

app: Final = typer.Typer(
    name=PROGRAM,
    help="Microsoft Message Queuing on Linux and anywhere Python runs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("status")(status.status)
app.command("metrics")(metrics.metrics)
app.command("console")(console.console)
app.add_typer(config.app, name="config")
app.add_typer(log.app, name="log")
app.add_typer(queue.app, name="queue")
app.add_typer(definitions.app, name="definitions")
app.command("send")(send.send)
app.command("receive")(receive.receive)
app.command("peek")(receive.peek)
app.add_typer(message.app, name="message")
app.command("journal")(journal.journal)
app.command("deadletter")(journal.deadletter)
app.add_typer(outgoing.app, name="outgoing")
app.add_typer(session.app, name="session")
app.add_typer(sequence.app, name="sequence")
app.add_typer(connection.app, name="connection")
app.command("online")(outgoing.online)
app.command("offline")(outgoing.offline)
app.add_typer(transaction.app, name="transaction")
app.add_typer(query.app, name="query")
app.add_typer(acl.manager_app, name="acl")
app.add_typer(token.app, name="token")
app.add_typer(user.app, name="user")
app.add_typer(certificate.app, name="certificate")
app.add_typer(key.app, name="key")
app.add_typer(peer.app, name="peer")
app.command("whoami")(acl.whoami)
app.add_typer(directory.app, name="directory")
app.add_typer(route.app, name="route")
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("failover")(failover.failover)
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
    remote: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            envvar="OPENMSMQ_REMOTE",
            help="Another computer with MSMQ, Windows too, that is managed over RPC instead: host, "
            "or host:port without its endpoint mapper.",
        ),
    ] = "",
    user: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            envvar="OPENMSMQ_REMOTE_USER",
            help=f"The account there: name or DOMAIN\\name; its password is asked for, or in "
            f"{PASSWORD_VARIABLE}.",
        ),
    ] = "",
    password_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            envvar="OPENMSMQ_REMOTE_PASSWORD_FILE",
            help="File with the password of --user, in its first line.",
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
    if remote and context.invoked_subcommand not in _REMOTE_GROUPS:
        fail(f"--remote works with {REMOTE_COMMANDS}.")
    context.obj = Target(qm, token_file, tls, ca, cert, key, remote, user, password_file)


def main() -> None:
    """Run the command line; a person never sees a traceback unless they ask for it."""
    for output in (sys.stdout, sys.stderr):
        # What a terminal cannot show becomes a question mark, not a failure.
        if output is not None:
            output.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = _command(asked_for(app, sys.argv[1:]))(prog_name=PROGRAM, standalone_mode=False)
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        code = _explain(error)
    sys.exit(code if isinstance(code, int) else 0)


def asked_for(whole: typer.Typer, arguments: list[str]) -> typer.Typer:
    """Return a program that has only the command that is asked for, or all of it.

    To make all commands takes as long as many of them need for their work. Where the name does not
    come first, or right after the address, all are there: for help, and for what is misspelt.
    """
    after = arguments[2:] if arguments[:1] == ["--qm"] else arguments
    commands = [each for each in whole.registered_commands if [each.name] == after[:1]]
    groups = [each for each in whole.registered_groups if [each.name] == after[:1]]
    if not commands and not groups:
        return whole
    narrow = copy.copy(whole)
    narrow.registered_commands, narrow.registered_groups = commands, groups
    return narrow


def _command(program: typer.Typer) -> Callable[..., Any]:
    """Make the command; the help of an option that takes no value shows none."""
    made = typer.main.get_command(program)
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
