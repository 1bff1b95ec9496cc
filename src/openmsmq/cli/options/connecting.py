"""How commands reach a queue manager, and what they say when something there goes wrong."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
import typer

from openmsmq.cli.views.console import fail, say_error
from openmsmq.client.errors import ConnectionLost, OutcomeUnknown, TlsMismatch
from openmsmq.client.settings import API_PORT, Settings
from openmsmq.model.errors import (
    MessageNotFound,
    MsmqError,
    ReceiveTimeout,
    ServiceNotAvailable,
)
from openmsmq.model.limits import MSMQ_PORT

if TYPE_CHECKING:
    import ssl

    from openmsmq.client import aio
    from openmsmq.client.blocking import QueueManager

Result = TypeVar("Result")

EXIT_FAILED: Final = 1
EXIT_NO_MESSAGE: Final = 3
EXIT_NO_CONNECTION: Final = 4
EXIT_UNKNOWN_OUTCOME: Final = 5

EXIT_CODES: Final = {
    0: "It worked.",
    EXIT_FAILED: "It failed; the sentence says why, with the MQ_ERROR name.",
    2: "The command was given something that it cannot use.",
    EXIT_NO_MESSAGE: "There was no such message, or none came in time.",
    EXIT_NO_CONNECTION: "No queue manager answered, or the connection to it was lost; what was "
    "asked for has not happened.",
    EXIT_UNKNOWN_OUTCOME: "The connection was lost before the answer came: it may have happened "
    "or not.",
    70: "A defect of OpenMSMQ; please report it.",
    75: "`serve` cannot start yet: a port or the store is in use, the disk is full, or the "
    "directory is away; try again later.",
}
"""What the exit codes of all commands mean, for `docs/reference/cli.md`."""

TOKEN_VARIABLE: Final = "OPENMSMQ_TOKEN"
PASSWORD_VARIABLE: Final = "OPENMSMQ_REMOTE_PASSWORD"
REMOTE_COMMANDS: Final = (
    "status, queue list, queue show, outgoing list, outgoing show, outgoing pause, outgoing "
    "resume, outgoing resend, online and offline"
)
"""What can be done with --remote."""
_NOBODY: Final = ServiceNotAvailable().name


class Target(msgspec.Struct, frozen=True):
    """The queue manager that the options before the command choose."""

    address: str
    token_file: str = ""
    tls: bool = False
    ca: str = ""
    cert: str = ""
    key: str = ""
    remote: str = ""
    """Another computer that is managed instead, over RPC."""
    user: str = ""
    password_file: str = ""

    def settings(self) -> Settings:
        """Make the settings of the client; stops with a sentence when something is wrong."""
        if (self.cert or self.key) and not (self.tls or self.ca):
            fail("--cert and --key need TLS: give --tls or --ca FILE, too.")
        made = Settings(
            address=self.address,
            token=self._token(),
            tls=self.ca or self.tls,
            certificate=self.cert,
            key=self.key,
            # A command is short: it is repeated sooner than it is continued.
            reconnect_within_s=0,
        )
        if made.unix_path is None:
            try:
                _ = made.host_and_port
            except ValueError as error:
                fail(f"--qm: {error}.")
        return made

    def _token(self) -> str:
        if not self.token_file:
            return os.environ.get(TOKEN_VARIABLE, "")
        try:
            return Path(self.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            fail(f"the token file {self.token_file} cannot be read: {_reason(error)}.")


@contextlib.contextmanager
def connected(context: typer.Context) -> Iterator[QueueManager]:
    """Connect to the chosen queue manager; errors in the block end the command with a sentence."""
    # Other commands do not pay for loading the client.
    from openmsmq.client.blocking import connect

    settings = _local_target(context).settings()
    tls = _tls_context(settings)
    with explained(settings), connect(settings, context=tls) as manager:
        yield manager


def target_of(context: typer.Context) -> Target:
    """Return what the options before the command choose."""
    target = context.find_object(Target)
    assert target is not None, "the options before the command leave the target behind"
    return target


def _local_target(context: typer.Context) -> Target:
    """Return the same for a command that only our own queue managers understand."""
    target = target_of(context)
    if target.remote:
        fail(
            f"{context.command_path} does not work with --remote: MSMQ can only be asked from afar "
            f"for {REMOTE_COMMANDS}."
        )
    return target


def run_connected(
    context: typer.Context, work: Callable[[aio.QueueManager], Awaitable[Result]]
) -> Result:
    """Do work that the console does, too, and that is written for asyncio; otherwise the same."""
    # Other commands do not pay for loading the client.
    import asyncio

    from openmsmq.client.aio import connect

    settings = _local_target(context).settings()
    tls = _tls_context(settings)

    async def run() -> Result:
        async with connect(settings, context=tls) as manager:
            return await work(manager)

    with explained(settings):
        return asyncio.run(run())


@contextlib.contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Turn what the client raises into one sentence and an exit code."""
    try:
        yield
    except (ReceiveTimeout, MessageNotFound) as error:
        say_error(str(error))
        raise typer.Exit(EXIT_NO_MESSAGE) from None
    except MsmqError as error:
        say_error(_with_notes(str(error), error))
        raise typer.Exit(EXIT_FAILED) from None
    except OutcomeUnknown as error:
        say_error(_with_notes(f"{error} ({_NOBODY})", error))
        raise typer.Exit(EXIT_UNKNOWN_OUTCOME) from None
    except ConnectionLost as error:
        say_error(_with_notes(f"{_without_answer(settings, error)} ({_NOBODY})", error))
        raise typer.Exit(EXIT_NO_CONNECTION) from None


def _with_notes(sentence: str, error: BaseException) -> str:
    return " ".join([sentence, *getattr(error, "__notes__", ())])


def _without_answer(settings: Settings, error: ConnectionLost) -> str:
    if isinstance(error, TlsMismatch):
        advice = (
            "give --tls, or --ca FILE with the certificates to trust"
            if error.speaks_tls
            else "leave out --tls and --ca, or start it with openmsmq serve --tls-cert FILE"
        )
        return f"{error.finding[:1].upper()}{error.finding[1:]}: {advice}."
    cause = error.__cause__
    if not isinstance(cause, OSError) or _is_tls(cause):
        return f"The queue manager at {settings.address} cannot be used: {str(error).rstrip('.')}."
    if isinstance(cause, ConnectionResetError):
        advice = (
            "If it has no TLS, leave out --tls and --ca."
            if settings.tls
            else "If it wants TLS, give --tls or --ca FILE."
        )
        return (
            f"What answers at {settings.address} ended the connection: {_reason(cause)}. {advice}"
        )
    return f"No queue manager answers at {settings.address}: {_reason(cause)}. " + _where_else(
        settings, cause
    )


def _where_else(settings: Settings, cause: OSError) -> str:
    path = settings.unix_path
    if path is not None:
        if Path(path).is_dir():
            return f"That is a directory: the socket of a queue manager is {path}/api.sock."
        advice = f"openmsmq serve --data {Path(path).parent}"
    else:
        host, port = settings.host_and_port
        if port == MSMQ_PORT:
            return (
                f"Port {port} is for other queue managers; applications use {API_PORT}: give "
                f"--qm {host}."
            )
        if isinstance(cause, socket.gaierror):
            return (
                "Check the name, or give the address; --qm needs a host, not the name of a queue "
                "manager."
            )
        advice = f"openmsmq serve --data DIRECTORY --address {host}"
    return f"Choose another with --qm ADDRESS, or start one with: {advice}"


def _is_tls(error: OSError) -> bool:
    return type(error).__module__ == "ssl"


def _tls_context(settings: Settings) -> ssl.SSLContext | None:
    try:
        return settings.tls_context()
    except OSError as error:
        files = ", ".join(
            file
            for file in (settings.tls, settings.certificate, settings.key)
            if isinstance(file, str) and file
        )
        fail(f"the certificates or keys in {files} cannot be used: {_reason(error)}.")


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return text[:1].lower() + text[1:]
