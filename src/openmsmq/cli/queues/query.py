"""`openmsmq query`: what is remembered of queries that write batches, so that each counts once."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.output import JsonObject, print_list, time_text

app: Final = typer.Typer(
    help="Queries that write batches: the last batch of each is remembered.",
    no_args_is_help=True,
)


@app.command("list")
def list_(
    context: typer.Context,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="Only queries whose names begin so.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """List the queries whose last batch is remembered."""
    with connected(context) as manager:
        found = manager.queries(prefix=prefix)
    objects: list[JsonObject] = [
        {
            "query": query.query,
            "batch": query.batch,
            "committed_time": time_text(query.committed_time_s),
            "owner": query.owner or None,
            "checkpoint": query.checkpoint or None,
        }
        for query in found
    ]
    columns = {
        "Query": "query",
        ">Batch": "batch",
        "Committed": "committed_time",
        "Owner": "owner",
        "Checkpoint": "checkpoint",
    }
    print_list(objects, columns, "no query is remembered", json=json)


@app.command()
def forget(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="As `query list` shows it.")],
) -> None:
    """Forget the last batch of a query, and abort all its parts that are not committed.

    Its name is then free for another checkpoint. If the query comes again, what it wrote last may
    be written a second time.
    """
    with connected(context) as manager:
        manager.forget_query(query)
    typer.echo(f"forgot {query}")
