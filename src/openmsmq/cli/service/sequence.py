"""`openmsmq sequence`: how far transactional messages of other queue managers have come here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.output import Columns, JsonObject, print_list, time_text
from openmsmq.model.identity import Guid
from openmsmq.model.limits import SEQUENCE_PAGE_MAX_COUNT

if TYPE_CHECKING:
    from openmsmq.api.messages import IncomingSequenceStatus
    from openmsmq.client.blocking import QueueManager

_DEFAULT_COUNT: Final = 1000

app: Final = typer.Typer(
    help="Sequences of transactional messages that come from other queue managers; for "
    "administrators.",
    no_args_is_help=True,
)


@app.command("list")
def list_(
    context: typer.Context,
    filter_: Annotated[
        str,
        typer.Option(
            "--filter",
            metavar="TEXT",
            help="A part of the sender's name, identifier or address, or of the queue's name.",
        ),
    ] = "",
    rejected: Annotated[
        bool,
        typer.Option("--rejected", help="Only those that wait for a message that has not come."),
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="At most so many.")
    ] = _DEFAULT_COUNT,
    json: JsonOption = False,
) -> None:
    """List the incoming sequences, by sender; what goes out is in `outgoing show`.

    Messages that come before their turn are dropped, and their sender sends them again. If
    `Rejected` grows and `Number` does not, the sender does not have the one between any more.
    """
    with connected(context) as manager:
        found, total_count, is_cut = _ask(manager, filter_, limit, rejected=rejected)
    columns: Columns = {
        "From": lambda each: each["name"] or each["manager_id"],
        "Address": "address",
        "To": "destination",
        "Sequence": "sequence",
        ">Number": "number",
        ">Rejected": "rejected_count",
        "Began": "since",
        "Last message": "last_message",
    }
    nothing = "none fits" if total_count else "no transactional message has come from elsewhere"
    print_list(map(_object, found), columns, nothing, json=json)
    if is_cut and not json:
        typer.echo(f"these are the first {len(found)}; there are {total_count} in all", err=True)


def _ask(
    manager: QueueManager, filter_: str, limit: int, *, rejected: bool
) -> tuple[list[IncomingSequenceStatus], int, bool]:
    """Ask page by page; gives what fits, how many there are, and whether some were left out."""
    found: list[IncomingSequenceStatus] = []
    after = b""
    while True:
        page = manager.incoming_sequences(
            after=after,
            limit=min(limit - len(found), SEQUENCE_PAGE_MAX_COUNT),
            filter=filter_,
            only_rejected=rejected,
        )
        found += page.sequences
        after = page.after
        if not after or len(found) >= limit:
            return found, page.total_count, bool(after)


def _object(found: IncomingSequenceStatus) -> JsonObject:
    return {
        "manager_id": str(Guid(found.manager)),
        "name": found.name or None,
        "address": found.address or None,
        "destination": found.destination,
        "sequence": f"{found.sequence:#018x}" if found.sequence else None,
        "number": found.number,
        "rejected_count": found.rejected_count,
        "since": time_text(found.since_s) if found.since_s else None,
        "last_message": time_text(found.last_time_s) if found.last_time_s else None,
    }
