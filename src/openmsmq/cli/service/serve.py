"""`openmsmq serve`: run a queue manager in the foreground.

Its flags are the options of `ServerConfig`, so that file, variables, flags and the reference page
can never differ.
"""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Optional, get_args, get_origin

import typer

from openmsmq.cli.views.console import say_error
from openmsmq.runtime.config.file import (
    DEFAULTS,
    VARIABLE_PREFIX,
    description,
    flag,
    plain_type,
)
from openmsmq.runtime.config.loading import load
from openmsmq.runtime.limits import TURN_FILE_MAX_BYTES

if TYPE_CHECKING:
    from openmsmq.runtime.service import Server

CONFIG_VARIABLE: Final = f"{VARIABLE_PREFIX}CONFIG"


def serve(
    config: str | None = None,
    *,
    new_store: bool = False,
    rename: bool = False,
    standby: bool = False,
    leave_log: bool = False,
    trace_turns: str | None = None,
    **flags: object,
) -> None:
    """Run a queue manager in the foreground, until SIGTERM or Ctrl-C stops it.

    SIGHUP makes it read certificates, tokens, alarms and the log level again. Exit code 2 says that
    something has to be put right before it can start; 75 that a port or the store is in use, the
    disk is full, or the directory is away, so that a supervisor should try again.
    """
    # Other commands do not pay for loading a server.
    from openmsmq.runtime.operating_system.identity import Leave
    from openmsmq.runtime.process import exit_code_for, run_in_loop
    from openmsmq.runtime.service import START_ERRORS

    try:
        given = load(flags, os.environ, config or os.environ.get(CONFIG_VARIABLE))
        leave = Leave(new_store=new_store, rename=rename, log=leave_log)
        code = run_in_loop(
            given, ready=_say_ready, leave=leave, trace_turns=trace_turns, standby=standby
        )
    except START_ERRORS as error:
        say_error(str(error))
        raise typer.Exit(exit_code_for(error)) from None
    raise typer.Exit(code)


def _say_ready(server: Server) -> None:
    facts = [f"name={server.manager_name}", f"id={server.manager_id}"]
    facts += [f"address={_endpoint(*endpoint)}" for endpoint in server.tcp_endpoints]
    facts += [f"sessions={_endpoint(*endpoint)}" for endpoint in server.session_endpoints]
    facts += [f"sessions-tls={_endpoint(*each)}" for each in server.session_tls_endpoints]
    if server.socket_path is not None:
        facts.append(f"socket={server.socket_path}")
    typer.echo(" ".join(["ready", *facts]))


def _endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _option(key: str) -> inspect.Parameter:
    kind: Any = plain_type(key)
    shown = description(key)
    names = [flag(key)]
    if kind is bool:
        names = [f"{flag(key)}/--no-{flag(key)[2:]}"]
    elif kind == tuple[str, ...]:
        kind = list[str]
        shown += " May be repeated."
    elif get_origin(kind) is Literal:
        shown += f" One of {', '.join(get_args(kind))}."
        kind = str
    default = DEFAULTS[key]
    if default not in ("", (), True, False):
        shown += f" [default: {default}]"
    return _parameter(key, Optional[kind], None, *names, help=shown)  # noqa: UP045


def _parameter(key: str, kind: Any, default: Any, *names: str, **said: Any) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(*names, **said)]
    place = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(key, place, default=default, annotation=annotation)


def _give_options() -> None:
    config = _parameter(
        "config",
        str | None,
        None,
        "--config",
        help="TOML file with these options, and with tables for the rest.",
    )
    # These stand in no file and no variable, because they are meant once.
    new_store = _parameter(
        "new_store",
        bool,
        False,
        "--new-store",
        help="Begin anew in a data directory whose store is lost. For one start only.",
    )
    rename = _parameter(
        "rename",
        bool,
        False,
        "--rename",
        help="Give the queue manager another name than it had. For one start only.",
    )
    standby = _parameter(
        "standby",
        bool,
        False,
        "--standby",
        help="Follow the log of [replication], which another computer has begun, and take over "
        "when the primary is lost.",
    )
    leave_log = _parameter(
        "leave_log",
        bool,
        False,
        "--leave-log",
        help="Make a queue manager on several computers one of its own again. For one start only, "
        "when no other computer serves it any more.",
    )
    trace = _parameter(
        "trace_turns",
        str | None,
        None,
        "--trace-turns",
        metavar="FILE",
        help="For developers: write what each turn did to this file, one JSON line a turn,"
        f" until it has {TURN_FILE_MAX_BYTES >> 20} MB. What messages contain is left out.",
    )
    parameters = [config, *map(_option, DEFAULTS), new_store, rename, standby, leave_log, trace]
    serve.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    serve.__annotations__ = {each.name: each.annotation for each in parameters}


_give_options()
