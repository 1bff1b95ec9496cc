"""`openmsmq directory`: what is in the directory, and changing it, by hand or by a plan."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from openmsmq.cli.enterprise.changes import make_changes
from openmsmq.cli.enterprise.discover import discover
from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import print_facts, print_json, print_table
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.errors import MachineNotFound, MsmqError, QueueNotFound
from openmsmq.model.identity import GUID_BYTES, Guid

if TYPE_CHECKING:
    from openmsmq.directory.image import DirectoryImage
    from openmsmq.directory.plans.plan import Plan
    from openmsmq.model.directory import DirectoryObject

app: Final = typer.Typer(
    help="The directory of the enterprise: sites, links, queue managers, public queues.",
    no_args_is_help=True,
)

STANDARD_INPUT: Final = "-"


KindArgument: TypeAlias = Annotated[
    ObjectKind,
    typer.Argument(metavar="KIND", help=f"One of {', '.join(kind.value for kind in ObjectKind)}."),
]
NameArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help=r"Its name: 'North', 'HQ1', 'HQ1\sales', 'North:South' for a link; or its identifier.",
    ),
]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask before changing.")]
DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Only show and check what would change.")
]
OutputOption: TypeAlias = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")
]


@app.command()
def show(context: typer.Context, json: JsonOption = False) -> None:
    """Show how much is in the directory, and who serves it."""
    with connected(context) as manager:
        image = manager.read_directory()
    enterprise = image.enterprise
    servers = sorted(
        found.computer_name
        for found in image.managers.values()
        if found.directory_server is not None
    )
    if json:
        print_json(
            {
                "enterprise": None if enterprise is None else enterprise.name,
                "identifier": None if enterprise is None else str(enterprise.identifier),
                "directory_servers": servers,
                **{f"{kind.value}_count": len(image.of_kind(kind)) for kind in _COUNTED},
            }
        )
        return
    if not len(image):
        typer.echo("the directory is empty: openmsmq directory apply FILE.yaml fills it")
        return
    title = "an enterprise without a name"
    if enterprise is not None:
        title = enterprise.name or title
    print_facts(
        title,
        [
            *((words, str(len(image.of_kind(kind)))) for kind, words in _COUNTED.items()),
            ("directory servers", ", ".join(servers) or "none named"),
        ],
    )


_COUNTED: Final = {
    ObjectKind.SITE: "sites",
    ObjectKind.LINK: "routing links",
    ObjectKind.NETWORK: "connected networks",
    ObjectKind.MANAGER: "queue managers",
    ObjectKind.QUEUE: "public queues",
    ObjectKind.USER: "users",
    ObjectKind.LIST: "distribution lists",
}


@app.command("list")
def list_(
    context: typer.Context,
    kind: KindArgument,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Only those of which this is true, as 'quota_kb >= 100'; all of several.",
        ),
    ] = None,
    sort: Annotated[
        str | None, typer.Option(metavar="PROPERTY", help="By this property, not by name.")
    ] = None,
    descending: Annotated[
        bool, typer.Option("--descending", help="The highest of the property first.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the objects of a kind: all of them, or those that meet conditions.

    A condition is a property as `--json` names it, one of = != < > <= >=, and a value.
    """
    # Other commands do not pay for loading it.
    from openmsmq.directory.naming import sorted_by_name
    from openmsmq.directory.questions import SortKey, read_condition, read_each

    with connected(context) as manager:
        conditions = [read_condition(kind, each) for each in where or ()]
        order = [SortKey(sort, descending)] if sort else []
        image = manager.read_directory()
        found = list(read_each(image, kind, conditions, order))
    _print_objects(kind, found if sort else sorted_by_name(found, image), image, json=json)


@app.command()
def get(
    context: typer.Context, kind: KindArgument, name: NameArgument, json: JsonOption = False
) -> None:
    """Show everything about one object."""
    from openmsmq.cli.views.directory import facts_of, object_of
    from openmsmq.directory.naming import WORDS, name_of

    with connected(context) as manager:
        image = manager.read_directory()
        found = _find(image, kind, name)
    if json:
        print_json(object_of(found, image))
    else:
        title = f"{WORDS[kind]} {name_of(found, image)}"
        print_facts(title, facts_of(found, image))


@app.command("find-queues")
def find_queues(
    context: typer.Context,
    label: Annotated[str | None, typer.Option(metavar="TEXT", help="With this label.")] = None,
    service_type: Annotated[
        str | None, typer.Option(metavar="GUID", help="Of this service type.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find public queues by what their owners say of them; without options, all of them."""
    try:
        wanted = None if service_type is None else Guid.parse(service_type)
    except ValueError as error:
        fail(f"--service-type: {error}.")
    with connected(context) as manager:
        image = manager.read_directory()
    queues = image.find_queues(label=label, service_type=wanted)
    _print_objects(ObjectKind.QUEUE, queues, image, json=json)


@app.command("apply")
def apply_(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help=f"A plan in YAML; {STANDARD_INPUT} reads it from a pipe."
        ),
    ],
    dry_run: DryRunOption = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Remove what the plan does not mention, and take back what it does not say.",
        ),
    ] = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Make the directory what a plan says: shows the differences, asks, and changes all or nothing.

    What the plan does not mention stays as it is, unless --prune is given.
    """
    from openmsmq.directory.plans.changes import changes_for
    from openmsmq.directory.plans.yaml_tree import PlanError

    if file == STANDARD_INPUT and not (yes or dry_run):
        fail("a plan from a pipe leaves nobody to ask: give --yes or --dry-run.")
    plan = _read_plan(file)
    with connected(context) as manager:
        image = manager.read_directory()
        try:
            changes = changes_for(plan, image, _new_guid, prune=prune)
        except PlanError as error:
            fail(f"{error}.")
        make_changes(manager, image, changes, dry_run=dry_run, yes=yes, json=json)


@app.command()
def remove(
    context: typer.Context,
    kind: KindArgument,
    name: NameArgument,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Remove an object that nothing else in the directory refers to."""
    with connected(context) as manager:
        image = manager.read_directory()
        found = _find(image, kind, name)
        removal = Removal(kind, found.identifier)
        make_changes(manager, image, [removal], dry_run=dry_run, yes=yes, json=json)


@app.command("export")
def export_(
    context: typer.Context,
    identifiers: Annotated[
        bool,
        typer.Option(
            "--identifiers", help="With identifiers, to make the same objects in another directory."
        ),
    ] = False,
    output: OutputOption = "",
) -> None:
    """Write the directory as a plan in YAML, which `directory apply` reads."""
    from openmsmq.directory.plans.writing import write_plan

    with connected(context) as manager:
        image = manager.read_directory()
    _write(write_plan(image, with_identifiers=identifiers), output)


@app.command("draw")
def draw_(context: typer.Context, output: OutputOption = "") -> None:
    """Draw the sites, their queue managers and the links between them, as SVG."""
    try:
        from openmsmq.directory.drawing.draw import draw
    except ModuleNotFoundError:
        fail("a picture needs Graphviz and Jinja2: pip install 'openmsmq[drawing]'.")
    with connected(context) as manager:
        image = manager.read_directory()
    _write(draw(image), output)


app.command("discover")(discover)


def _print_objects(
    kind: ObjectKind, values: Sequence[DirectoryObject], image: DirectoryImage, *, json: bool
) -> None:
    from openmsmq.cli.views.directory import TABLES, object_of

    if json:
        for value in values:
            print_json(object_of(value, image))
        return
    columns, row = TABLES[kind]
    if not print_table(columns, [row(value, image) for value in values]):
        typer.echo(f"there are none: no {columns[0].lower()} is in the directory")


def _find(image: DirectoryImage, kind: ObjectKind, name: str) -> DirectoryObject:
    from openmsmq.directory.naming import WORDS, find_object, name_of
    from openmsmq.directory.plans.yaml_tree import nearest

    found = find_object(image, kind, name)
    if found is None:
        known = [name_of(value, image) for value in image.of_kind(kind).values()]
        detail = f"no {WORDS[kind]} {name} is in the directory{nearest(name, known)}"
        raise _NOT_FOUND.get(kind, MsmqError)(detail)
    return found


_NOT_FOUND: Final[dict[ObjectKind, type[MsmqError]]] = {
    ObjectKind.MANAGER: MachineNotFound,
    ObjectKind.QUEUE: QueueNotFound,
}


def _read_plan(file: str) -> Plan:
    from openmsmq.directory.plans.plan import read_plan
    from openmsmq.directory.plans.yaml_tree import PLAN_MAX_BYTES, PlanError

    shown = "standard input" if file == STANDARD_INPUT else file
    try:
        if file == STANDARD_INPUT:
            data = sys.stdin.buffer.read(PLAN_MAX_BYTES + 1)
        else:
            with open(file, "rb") as opened_file:
                data = opened_file.read(PLAN_MAX_BYTES + 1)
        return read_plan(data.decode("utf-8-sig"), shown)
    except OSError as error:
        fail(f"{shown} cannot be read: {(error.strerror or str(error)).lower()}.")
    except UnicodeDecodeError as error:
        fail(f"{shown} is no text in UTF-8: byte {error.start} is none.")
    except PlanError as error:
        fail(f"{error}.")


def _new_guid() -> Guid:
    return Guid(random.SystemRandom().randbytes(GUID_BYTES))


def _write(text: str, output: str) -> None:
    if not output:
        typer.echo(text, nl=False)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{output} cannot be written: {(error.strerror or str(error)).lower()}.")
    typer.echo(f"wrote {output}")
