"""How commands reach MSMQ on another computer over RPC, and what they say when that fails."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from openmsmq.cli.options.connecting import (
    EXIT_FAILED,
    EXIT_NO_CONNECTION,
    PASSWORD_VARIABLE,
    Target,
    target_of,
)
from openmsmq.cli.views.console import fail, say_error
from openmsmq.client.settings import Settings
from openmsmq.model.errors import MsmqError

if TYPE_CHECKING:
    from openmsmq.client.errors import ConnectionLost
    from openmsmq.client.managing.host import RemoteHost
    from openmsmq.security.authentication.ntlm.parties import Credentials


@contextlib.contextmanager
def reached(context: typer.Context) -> Iterator[RemoteHost]:
    """Connect to the computer of --remote; errors in the block end the command with a sentence."""
    # Other commands do not pay for loading what speaks RPC.
    from openmsmq.client.connections.rpc_connection import RpcFault
    from openmsmq.client.errors import ConnectionLost
    from openmsmq.client.managing.host import RemoteHost

    target = target_of(context)
    host, port = _place(target.remote)
    credentials = _credentials(target)
    try:
        with RemoteHost.reached(host, port, credentials) as found:
            yield found
    except MsmqError as error:
        say_error(f"{host}: {error}")
        raise typer.Exit(EXIT_FAILED) from None
    except RpcFault as fault:
        say_error(_about_fault(host, target, fault.status))
        raise typer.Exit(EXIT_FAILED) from None
    except ConnectionLost as error:
        _explain(host, port, target, error)


def _place(text: str) -> tuple[str, int | None]:
    settings = Settings(address=text)
    try:
        host, port = settings.host_and_port
    except ValueError as error:
        fail(f"--remote: {error}.")
    has_port = text != host and text != f"[{host}]"
    return host, port if has_port else None


def _credentials(target: Target) -> Credentials | None:
    from openmsmq.security.authentication.initiators import credentials_of

    if not target.user:
        return None
    return credentials_of(target.user, _password(target), socket.gethostname())


def _password(target: Target) -> str:
    """Return the password; it never stands in the arguments, where others could see it."""
    if target.password_file:
        try:
            lines = Path(target.password_file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            fail(f"the password file {target.password_file} cannot be read: {reason.lower()}.")
        return lines[0] if lines else ""
    if PASSWORD_VARIABLE in os.environ:
        return os.environ[PASSWORD_VARIABLE]
    if sys.stdin is not None and sys.stdin.isatty():
        return getpass.getpass(f"Password of {target.user} at {target.remote}: ")
    fail(
        f"the password of {target.user} is missing: give --password-file FILE, set "
        f"{PASSWORD_VARIABLE}, or run it at a terminal."
    )


def _about_fault(host: str, target: Target, status: int) -> str:
    from openmsmq.wire.rpc.pdus import Status

    if status != Status.ACCESS_DENIED:
        return f"{host} ended the call without an answer (status {status:#010x})."
    if not target.user:
        return f"{host} wants to know who asks: give --user NAME, an account there."
    return f"{host} refuses {target.user}: access is denied."


def _explain(host: str, port: int | None, target: Target, error: ConnectionLost) -> NoReturn:
    from openmsmq.client.connections.rpc_connection import RpcFailed, RpcUnreachable
    from openmsmq.protocol.rpc.client_states import FailureKind
    from openmsmq.protocol.rpc.endpoint_lookup import MAPPER_PORT

    code = EXIT_NO_CONNECTION
    cause = error.__cause__
    if isinstance(error, RpcUnreachable):
        reason = getattr(cause, "strerror", None) or str(cause)
        if isinstance(cause, socket.gaierror):
            sentence = f"{host} is not known: {reason.lower()}."
        elif port is None and error.port == MAPPER_PORT:
            sentence = (
                f"No endpoint mapper answers at {host}, port {error.port}: {reason.lower()}. If "
                f"you know the port of its queue manager, give --remote {host}:PORT."
            )
        else:
            sentence = f"Nobody answers at {host}, port {error.port}: {reason.lower()}."
    elif isinstance(error, RpcFailed) and error.kind is FailureKind.NOT_AUTHENTICATED:
        sentence = f"{host} does not accept {target.user or 'a stranger'}: {error}."
        code = EXIT_FAILED
    elif isinstance(error, RpcFailed) and error.kind is FailureKind.NO_INTERFACE:
        sentence = f"{host} cannot be managed: {error}."
        code = EXIT_FAILED
    else:
        sentence = f"{host} cannot be used: {error}."
    say_error(sentence)
    raise typer.Exit(code) from None
