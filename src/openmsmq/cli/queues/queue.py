"""`openmsmq queue`: create, list, show, change, delete, purge, release and move."""

from __future__ import annotations

from enum import StrEnum
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from openmsmq.cli.messages import exporting
from openmsmq.cli.options.connecting import connected, target_of
from openmsmq.cli.options.reading import (
    CountOption,
    IdOption,
    JsonOption,
    LookupOption,
    QueueArgument,
    choose,
    look,
)
from openmsmq.cli.queues import acl, remote
from openmsmq.cli.queues.listing import list_, queue_object, reservation
from openmsmq.cli.views.console import YesOption, ask_before, fail
from openmsmq.cli.views.output import (
    count_text,
    print_facts,
    print_json,
    print_result,
    progress,
    progress_by_asking,
    quota_value,
    size_text,
    time_text,
)
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.model.queue import QueuePrivacy

if TYPE_CHECKING:
    from openmsmq.api.messages import QueueStatus
    from openmsmq.client.blocking import Queue

MOVE_BATCH_COUNT: Final = 1000
"""Messages between two signs of progress of a move."""

app: Final = typer.Typer(help="Queues: create, look at, change, empty, move.", no_args_is_help=True)

UNLIMITED: Final = "unlimited"


class Privacy(StrEnum):
    """Names of `QueuePrivacy`."""

    NONE = "none"
    OPTIONAL = "optional"
    BODY = "body"


def read_quota(text: str) -> int:
    """Read a quota in kilobytes, or `unlimited`."""
    if text == UNLIMITED:
        return UNLIMITED_KB
    if not (text.isascii() and text.isdecimal() and int(text) <= UNLIMITED_KB):
        raise typer.BadParameter(f"{text!r} is no quota: give kilobytes, or {UNLIMITED}")
    return int(text)


QuotaOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--quota-kb", metavar="N", parser=read_quota, help=f"Room for messages, or {UNLIMITED}."
    ),
]
JournalQuotaOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--journal-quota-kb",
        metavar="N",
        parser=read_quota,
        help=f"Room in its journal, or {UNLIMITED}.",
    ),
]


def read_guid(text: str) -> Guid:
    """Read an identifier as people write it."""
    try:
        return Guid.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


ServiceTypeOption: TypeAlias = Annotated[
    Guid | None,
    typer.Option(
        "--service-type",
        metavar="GUID",
        parser=read_guid,
        help="What kind of service the queue stands for; others look for it by this.",
    ),
]
BasePriorityOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--base-priority",
        metavar="N",
        help="Added to the priority of messages on their way to it; public queues only.",
    ),
]
MulticastOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--multicast",
        metavar="ADDRESS:PORT",
        help="Multicast address from which it gets messages; '' for none.",
    ),
]


@app.command()
def create(
    context: typer.Context,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help=r"Path name, such as 'private$\orders'; '.\orders' is a public queue.",
        ),
    ],
    transactional: Annotated[
        bool, typer.Option("--transactional", help="Takes messages in transactions only.")
    ] = False,
    journal: Annotated[
        bool, typer.Option("--journal", help="Keeps copies of received messages.")
    ] = False,
    quota: QuotaOption = None,
    journal_quota: JournalQuotaOption = None,
    label: Annotated[str, typer.Option(metavar="TEXT", help="The label.")] = "",
    authenticate: Annotated[
        bool, typer.Option("--authenticate", help="Takes only signed messages.")
    ] = False,
    privacy: Annotated[
        Privacy,
        typer.Option(
            help="Whether it takes encrypted messages: none, optional, or body (only those)."
        ),
    ] = Privacy.OPTIONAL,
    service_type: ServiceTypeOption = None,
    base_priority: BasePriorityOption = 0,
    multicast: MulticastOption = None,
    json: JsonOption = False,
) -> None:
    """Create a queue."""
    with connected(context) as manager:
        queue = manager.create_queue(
            path,
            transactional=transactional,
            journaling=journal,
            quota_kb=quota,
            journal_quota_kb=journal_quota,
            label=label,
            authenticate=authenticate,
            privacy=QueuePrivacy[privacy.name],
            service_type=service_type or NIL_GUID,
            base_priority=base_priority or 0,
            multicast_address=multicast or "",
        )
        created = queue.properties()
    sentence = f"created {created.path_name}, {created.format_name}"
    print_result(queue_object(created), sentence, json=json)


@app.command()
def show(context: typer.Context, queue: QueueArgument, json: JsonOption = False) -> None:
    """Show a queue: its properties and what is in it."""
    if target_of(context).remote:
        remote.show_queue(context, queue, json=json)
        return
    with connected(context) as manager:
        found = manager.queue(queue).properties()
    _show(found, json=json)


@app.command()
def names(context: typer.Context, queue: QueueArgument, json: JsonOption = False) -> None:
    """Show the path name and the format names of a queue."""
    with connected(context) as manager:
        found = manager.names(queue)
    if json:
        print_json(
            {
                "path_name": found.path_name,
                "format_name": found.format_name,
                "private_name": found.private_name or None,
            }
        )
        return
    facts = [("format name", found.format_name), ("by number", found.private_name)]
    print_facts(found.path_name, [(kind, name) for kind, name in facts if name])


@app.command()
def change(
    context: typer.Context,
    queue: QueueArgument,
    label: Annotated[str | None, typer.Option(metavar="TEXT", help="The label.")] = None,
    journal: Annotated[
        bool | None, typer.Option("--journal/--no-journal", help="Keeps received messages.")
    ] = None,
    quota: QuotaOption = None,
    journal_quota: JournalQuotaOption = None,
    authenticate: Annotated[
        bool | None,
        typer.Option("--authenticate/--no-authenticate", help="Takes only signed messages."),
    ] = None,
    privacy: Annotated[
        Privacy | None, typer.Option(help="Encrypted messages: none, optional or body.")
    ] = None,
    service_type: ServiceTypeOption = None,
    base_priority: BasePriorityOption = None,
    multicast: MulticastOption = None,
    json: JsonOption = False,
) -> None:
    """Change properties of a queue, and show it."""
    changes = (label, journal, quota, journal_quota, authenticate, privacy, service_type)
    if all(value is None for value in (*changes, base_priority, multicast)):
        fail("what is to be changed? Give at least one of the options of `queue change --help`.")
    with connected(context) as manager:
        found = manager.queue(queue).change(
            label=label,
            journaling=journal,
            quota_kb=quota,
            journal_quota_kb=journal_quota,
            authenticate=authenticate,
            privacy=None if privacy is None else QueuePrivacy[privacy.name],
            service_type=service_type,
            base_priority=base_priority,
            multicast_address=multicast,
        )
    _show(found, json=json)


@app.command()
def delete(context: typer.Context, queue: QueueArgument, yes: YesOption = False) -> None:
    """Delete a queue with everything in it; at a terminal, ask first."""
    with connected(context) as manager:
        found = manager.queue(queue)
        total = found.count()
        ask_before(f"Delete {queue} with {count_text(total)}?", yes=yes)
        found.delete()
    typer.echo(f"deleted {queue}, with {count_text(total)}")


@app.command()
def purge(
    context: typer.Context,
    queue: QueueArgument,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Delete all messages of a queue; at a terminal, ask first.

    Messages that transactions hold or readers have reserved stay.
    """
    with connected(context) as manager:
        purged = purge_queue(manager.queue(queue), yes=yes)
    report_purge(queue, purged, json=json)


def purge_queue(queue: Queue, *, yes: bool) -> int:
    """Delete all messages of a queue, with progress, after asking; gives how many."""
    total = queue.count()
    ask_before(f"Delete {count_text(total)} from {queue.name}?", yes=yes)
    with progress_by_asking(f"Purging {queue.name}", total, queue.count):
        return queue.purge()


def report_purge(name: str, count: int, *, json: bool) -> None:
    """Say what a purge did."""
    sentence = f"deleted {count_text(count)} from {name}"
    print_result({"queue": name, "purged": count}, sentence, json=json)


@app.command()
def release(context: typer.Context, queue: QueueArgument, json: JsonOption = False) -> None:
    """Give the messages that a reader has reserved back to everybody.

    For a reader that will not come back, such as a Spark query that was deleted. One that does
    come back may have processed the messages already, and others receive them a second time.
    """
    with connected(context) as manager:
        found = manager.queue(queue).properties()
        manager.release(queue)
    if json:
        print_json({"queue": queue, **reservation(found)})
    elif found.reserved_stop:
        typer.echo(
            f"released what {found.reserved_for} had reserved in {queue}, "
            f"{_numbers(found)}: everybody can receive it now"
        )
    else:
        typer.echo(f"nothing is reserved in {queue}")


def _numbers(found: QueueStatus) -> str:
    return f"arrival numbers {found.reserved_start} to {found.reserved_stop - 1}"


@app.command()
def move(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FROM", help="The queue, or a subqueue.")],
    target: Annotated[
        str, typer.Argument(metavar="TO", help=r"A subqueue, such as 'private$\orders;later'.")
    ],
    count: CountOption = None,
    message_id: IdOption = None,
    lookup_id: LookupOption = None,
    json: JsonOption = False,
) -> None:
    """Move messages between a queue and its subqueues, or between these: all, or as chosen."""
    # Other commands do not pay for loading the client.
    from openmsmq.cli.messages.bulk import move_many

    choice = choose(count=count, message_id=message_id, lookup_id=lookup_id)
    with connected(context) as manager:
        queue, into = manager.queue(source), manager.queue(target)
        if choice.is_one:
            queue.move(next(look(queue, choice)), into)
            moved_count = 1
            left_count = 0
        else:
            status = queue.properties()
            there = status.message_count
            total = there if count is None else min(count, there)
            moved_count = left_count = 0
            found = chain.from_iterable(exporting.fetched(queue, status, MOVE_BATCH_COUNT))
            lookup_ids = (entry.lookup_id for entry in islice(found, total))
            with progress(f"Moving to {target}", total) as bar:
                while batch := list(islice(lookup_ids, MOVE_BATCH_COUNT)):
                    moved = move_many(queue, batch, into)
                    bar.advance(len(batch))
                    moved_count += moved.count
                    left_count += moved.left_count
    left = f"; {left_count} were taken or held by others" if left_count else ""
    print_result(
        {"from": source, "to": target, "moved": moved_count, "left": left_count},
        f"moved {count_text(moved_count)} from {source} to {target}{left}",
        json=json,
    )


app.command("list")(list_)
app.add_typer(acl.queue_app, name="acl")
app.command("export")(exporting.export)
app.command("import")(exporting.import_)


def _show(found: QueueStatus, *, json: bool) -> None:
    if json:
        print_json(queue_object(found))
        return
    quotas = [
        UNLIMITED if quota is None else f"{quota} KB"
        for quota in (quota_value(found.quota_kb), quota_value(found.journal_quota_kb))
    ]
    reserved = []
    if found.reserved_stop:
        reserved = [("reserved", f"for {found.reserved_for}, {_numbers(found)}")]
    public = []
    if found.is_public:
        public = [
            ("service type", str(Guid(found.service_type))),
            ("base priority", str(found.base_priority)),
        ]
    if found.multicast_address:
        public.append(("multicast", found.multicast_address))
    print_facts(
        found.path_name,
        [
            ("format name", found.format_name),
            ("identifier", str(Guid(found.identifier))),
            ("label", found.label),
            ("transactional", "yes" if found.transactional else "no"),
            ("messages", f"{found.message_count} ({size_text(found.message_bytes)})"),
            *_movement(found),
            *reserved,
            *public,
            ("quota", quotas[0]),
            ("journal", "kept" if found.journaling else "not kept"),
            (
                "messages in journal",
                f"{found.journal_message_count} ({size_text(found.journal_message_bytes)})",
            ),
            ("quota of journal", quotas[1]),
            ("authenticated only", "yes" if found.authentication_required else "no"),
            ("privacy", QueuePrivacy(found.privacy).name.lower()),
            ("created", time_text(found.created_time_s)),
            ("modified", time_text(found.modified_time_s)),
            ("open handles", str(found.open_count)),
            ("waiting readers", str(found.waiting_count)),
        ],
    )


def _movement(found: QueueStatus) -> list[tuple[str, str]]:
    """Return what came and went since the start of the queue manager, and when the oldest came."""
    gone = [
        (found.out_count, "received"),
        (found.expired_count, "expired"),
        (found.purged_count, "purged"),
        (found.moved_count, "moved"),
        (found.refused_count, "given up"),
    ]
    told = ", ".join(f"{count} {word}" for count, word in gone if count)
    moved = [("since the start", f"{found.in_count} came; {told or 'none left'}")]
    if found.oldest_time_s:
        moved.append(("oldest message", f"came {time_text(found.oldest_time_s)}"))
    return moved
