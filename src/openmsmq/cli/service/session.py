"""`openmsmq session`: with which other queue managers this one talks, and how far that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import typer

from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.output import Columns, JsonObject, print_list, time_text
from openmsmq.model.identity import NIL_GUID, Guid

if TYPE_CHECKING:
    from openmsmq.api.messages import SessionStatus

app: Final = typer.Typer(help="Sessions with other queue managers.", no_args_is_help=True)


@app.command("list")
def list_(context: typer.Context, json: JsonOption = False) -> None:
    """List the sessions with other queue managers; outgoing queues are in `outgoing list`."""
    with connected(context) as manager:
        found = manager.sessions()
    columns: Columns = {
        "With": _who,
        "Address": "address",
        "Opened": lambda each: "here" if each["is_dialled"] else "there",
        "Over": lambda each: "TLS" if each["tls"] else "TCP",
        "Since": "since",
        "State": "state",
        "Waits for": "waits_for",
        ">In flight": "in_flight_count",
        ">Sent": "sent_bytes",
        ">Received": "received_bytes",
    }
    print_list(map(_object, found), columns, "there is no session", json=json)


def _who(found: Mapping[str, object]) -> object:
    return found["name"] or found["manager_id"] or "not known yet"


def _object(found: SessionStatus) -> JsonObject:
    manager = Guid(found.manager)
    return {
        "number": found.number,
        "manager_id": None if manager == NIL_GUID else str(manager),
        "name": found.name or None,
        "address": found.address,
        "is_dialled": found.is_dialled,
        "tls": bool(found.proven),
        "peer_rule": found.proven or None,
        "state": found.state,
        "waits_for": found.waits_for,
        "since": time_text(found.since_s),
        "window": found.window,
        "in_flight_count": found.in_flight_count,
        "unstored_count": found.unstored_count,
        "unsettled_count": found.unsettled_count,
        "sent_count": found.sent_count,
        "sent_bytes": found.sent_bytes,
        "received_count": found.received_count,
        "received_bytes": found.received_bytes,
        "queue_count": found.queue_count,
        "queues": found.queues,
    }
