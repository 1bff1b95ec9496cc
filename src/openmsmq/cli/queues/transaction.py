"""`openmsmq transaction`: prepared transactions that wait for their coordinator's word.

The coordinator of a part of a batch is the query that wrote it: it commits all parts at once.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.queues.query import forget
from openmsmq.cli.views.output import JsonObject, print_list, time_text
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.identity import Guid

app: Final = typer.Typer(
    help="Transactions in doubt: prepared, but neither committed nor aborted.",
    no_args_is_help=True,
)

app.command()(forget)

UnitArgument = Annotated[
    str,
    typer.Argument(metavar="ID", help="The transaction, as `transaction list` shows it."),
]


@app.command("list")
def list_(context: typer.Context, json: JsonOption = False) -> None:
    """List the transactions in doubt."""
    with connected(context) as manager:
        found = manager.in_doubt()
    objects: list[JsonObject] = [
        {
            "transaction_id": str(Guid(work.unit_of_work)),
            "prepared_time": time_text(work.prepared_time_s),
            "sent_count": work.sent_count,
            "received_count": work.received_count,
            "owner": work.owner or None,
            "query": work.query or None,
            "batch": work.batch if work.query else None,
            "xid": str(work.xid) if work.xid else None,
        }
        for work in found
    ]
    columns = {
        "Transaction": "transaction_id",
        "Prepared": "prepared_time",
        ">Sends": "sent_count",
        ">Receives": "received_count",
        "Owner": "owner",
        "Query": "query",
        ">Batch": "batch",
        "Xid": "xid",
    }
    print_list(objects, columns, "no transaction is in doubt", json=json)


@app.command()
def commit(context: typer.Context, transaction: UnitArgument) -> None:
    """Let everything in a transaction in doubt take effect; not for a part of a batch."""
    _resolve(context, transaction, commit=True)


@app.command()
def abort(context: typer.Context, transaction: UnitArgument) -> None:
    """Undo everything in a transaction in doubt."""
    _resolve(context, transaction, commit=False)


def _resolve(context: typer.Context, text: str, *, commit: bool) -> None:
    with connected(context) as manager:
        try:
            unit_of_work = Guid.parse(text)
        except ValueError as error:
            raise InvalidParameter(str(error)) from None
        manager.resolve(unit_of_work, commit=commit)
    typer.echo(f"{'committed' if commit else 'aborted'} {unit_of_work}")
