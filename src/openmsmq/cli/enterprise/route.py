"""`openmsmq route`: which way messages take through the enterprise, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.options.connecting import EXIT_FAILED, connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import say_error
from openmsmq.cli.views.output import JsonObject, count_text, print_json, print_table
from openmsmq.model.directory import ObjectKind
from openmsmq.model.errors import MachineNotFound
from openmsmq.model.queue import QueueProperties

if TYPE_CHECKING:
    from openmsmq.directory.image import DirectoryImage
    from openmsmq.model.identity import Guid
    from openmsmq.routing.explain import Explanation

app: Final = typer.Typer(help="Routes through the enterprise.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Routes through the enterprise."""


@app.command()
def show(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="The queue manager that sends, by computer name.")
    ],
    destination: Annotated[
        str,
        typer.Argument(
            metavar="TO", help=r"The queue manager that receives, or a public queue: 'HQ1\sales'."
        ),
    ],
    json: JsonOption = False,
) -> None:
    """Explain the way of messages between two queue managers, hop by hop, and what it costs.

    It is what the directory leads to while everybody can be reached; `Otherwise` says who is tried
    when a hop cannot. Exit code 1 says that messages do not arrive.
    """
    # Other commands do not pay for loading it.
    from openmsmq.routing.explain import explain
    from openmsmq.routing.next_hops import Routes

    with connected(context) as manager:
        image = manager.read_directory()
        start, end = _manager(image, source), _manager(image, destination)
    routes = Routes(start, image.sites.values(), image.links.values(), image.managers.values())
    found = explain(routes, start, end)
    if json:
        print_json(explanation_object(found))
    else:
        _print(found)
    if found.problem:
        if not json:
            say_error(f"messages do not arrive: {found.problem}.")
        raise typer.Exit(EXIT_FAILED)


def _manager(image: DirectoryImage, name: str) -> Guid:
    from openmsmq.directory.naming import find_object
    from openmsmq.directory.plans.yaml_tree import nearest

    found = find_object(image, ObjectKind.MANAGER, name)
    if found is not None:
        return found.identifier
    queue = find_object(image, ObjectKind.QUEUE, name)
    if isinstance(queue, QueueProperties):
        return queue.manager
    known = [manager.computer_name for manager in image.managers.values()]
    raise MachineNotFound(f"{name} is not in the directory{nearest(name, known)}")


def explanation_object(found: Explanation) -> JsonObject:
    """Return a route under the names that programs rely on."""
    return {
        "from": found.source,
        "to": found.destination,
        "cost": found.cost,
        "hop_count": found.hop_count,
        "problem": found.problem or None,
        "steps": [
            {
                "manager": step.name,
                "identifier": str(step.manager),
                "site": step.site,
                "why": step.why,
                "cost": step.cost,
                "alternates": list(step.alternates),
            }
            for step in found.steps
        ],
    }


def _print(found: Explanation) -> None:
    if not found.problem:
        hops = count_text(found.hop_count, "hop")
        typer.echo(f"{found.source} to {found.destination}: {hops}, cost {found.cost}")
    rows = [
        [
            str(number),
            step.name,
            step.site,
            str(step.cost) if step.cost else "",
            step.why,
            ", ".join(step.alternates),
        ]
        for number, step in enumerate(found.steps)
    ]
    print_table((">Hop", "Queue manager", "Site", ">Cost", "Why", "Otherwise"), rows)
