"""`openmsmq pipeline init`: a project of Spark Declarative Pipelines, ready to be edited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.pipeline.ingest import connection_options
from openmsmq.cli.pipeline.running import require_new_directory
from openmsmq.cli.views.console import Printer
from openmsmq.cli.views.output import print_json

_FILES: Final = frozenset({"tokenFile", "ca", "certificate", "key"})


def init(
    context: typer.Context,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="The directory of the project, new or empty.")
    ],
    queue: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="A queue to read, or * for all; may be repeated."),
    ],
    consume: Annotated[
        bool,
        typer.Option(
            "--consume",
            help="Take the messages out of their queues when they are in the table; otherwise "
            "they stay there.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Write a project of Spark Declarative Pipelines that reads queues.

    Each run of it keeps up to date tables of the messages and of what became of them.
    """
    root = Path(directory).absolute()
    require_new_directory(directory)
    # It needs nothing of Spark, but the package of Spark is loaded only by those who use it.
    from openmsmq.spark.pipelines.declarative_project import RUN, project_files

    options = _reaching(context) | {
        "queue": ",".join(queue),
        "mode": "consume" if consume else "browse",
    }
    files = project_files(root.name, str(root), "queues", options)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if json:
        for name in files:
            print_json({"file": str(root / name)})
        return
    printer = Printer()
    for name in files:
        printer.line((f"wrote {root / name}", ""))
    printer.line((f"Run it with: cd {root} && {' '.join(RUN)}", ""))


def _reaching(context: typer.Context) -> dict[str, str]:
    """Return how the queue manager is reached; a token itself does not belong into a file."""
    return {
        name: str(Path(value).absolute()) if name in _FILES else value
        for name, value in connection_options(context, None).items()
        if name != "token"
    }
