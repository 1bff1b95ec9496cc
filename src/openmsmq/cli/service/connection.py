"""`openmsmq connection`: which applications are connected, and the end of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import YesOption, ask_before
from openmsmq.cli.views.output import Columns, JsonObject, print_list, print_result, time_text
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.sids import Sid

if TYPE_CHECKING:
    from openmsmq.api.messages import ConnectedApplication

app: Final = typer.Typer(
    help="Connections of applications: who is there, and with what; for administrators.",
    no_args_is_help=True,
)


@app.command("list")
def list_(context: typer.Context, json: JsonOption = False) -> None:
    """List the connections of all applications, this one included."""
    with connected(context) as manager:
        found = manager.connections()
    columns: Columns = {
        ">Number": "number",
        "Who": "caller",
        "From": "peer",
        "Since": "since",
        ">Waits": "waiting_count",
        ">Transactions": "transaction_count",
        "Open": _open_text,
    }
    print_list(map(_object, found), columns, "nobody is connected", json=json)


@app.command()
def close(
    context: typer.Context,
    number: Annotated[
        int,
        typer.Argument(metavar="NUMBER", min=1, help="As `connection list` shows it."),
    ],
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """End a connection; what it has not committed is undone. At a terminal, ask first.

    Most clients connect again by themselves: to keep one out, take its token or its rights away.
    """
    ask_before(f"End connection {number}, with all that it has under way?", yes=yes)
    with connected(context) as manager:
        manager.close_connection(number)
    print_result({"closed": number}, f"closed connection {number}", json=json)


def _object(found: ConnectedApplication) -> JsonObject:
    return {
        "number": found.number,
        "caller": found.caller,
        "sid": str(Sid(found.user)),
        "peer": found.peer,
        "door": found.door,
        "since": time_text(found.since_s),
        "is_own": found.is_own,
        "waiting_count": found.waiting_count,
        "transaction_count": found.transaction_count,
        "open_count": found.queue_count,
        "open": [
            {
                "queue": handle.name,
                "access": AccessMode(handle.access).name.lower(),
                "waiting_count": handle.waiting_count,
            }
            for handle in found.queues
        ],
    }


def _open_text(found: object) -> str:
    assert isinstance(found, dict)
    names = [f"{each['queue']} ({each['access']})" for each in found["open"]]
    left = found["open_count"] - len(names)
    return ", ".join([*names, f"and {left} more"] if left else names)
