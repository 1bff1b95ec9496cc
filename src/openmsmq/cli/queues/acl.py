"""`openmsmq queue acl` and `openmsmq acl`: who may do what with a queue, and with the manager."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from openmsmq.cli.options.accounts import ACCOUNT_HELP, read_account
from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption, QueueArgument
from openmsmq.cli.views.output import Columns, JsonObject, print_facts, print_json, print_list
from openmsmq.client.accounts import account_text
from openmsmq.security.access.rights import MANAGER_WORDS, QUEUE_WORDS, words_of
from openmsmq.security.access.sids import Sid

if TYPE_CHECKING:
    from openmsmq.client.blocking import Queue, QueueManager
    from openmsmq.client.verbs.access import Security
    from openmsmq.security.access.descriptors import AccessEntry

queue_app: Final = typer.Typer(
    help="Rights on a queue: who may send, receive, look, and change.", no_args_is_help=True
)
manager_app: Final = typer.Typer(
    help="Rights on the queue manager: creating queues, dead letters, the journal, settings.",
    no_args_is_help=True,
)


def _reader(known: Mapping[str, int]) -> typer.models.ArgumentInfo:
    def read(text: str) -> str:
        if text not in known:
            raise typer.BadParameter(f"{text!r} is no right: use {', '.join(known)}")
        return text

    info: typer.models.ArgumentInfo = typer.Argument(
        metavar="RIGHT...", parser=read, help=f"Rights: {', '.join(known)}."
    )
    return info


WhoArgument: TypeAlias = Annotated[
    Sid, typer.Argument(metavar="WHO", parser=read_account, help=ACCOUNT_HELP)
]
OwnerArgument: TypeAlias = Annotated[
    Sid | None,
    typer.Argument(
        metavar="WHO", parser=read_account, help=f"{ACCOUNT_HELP} Without: you yourself."
    ),
]
QueueRights: TypeAlias = Annotated[list[str], _reader(QUEUE_WORDS)]
ManagerRights: TypeAlias = Annotated[list[str], _reader(MANAGER_WORDS)]


# Queues.


@queue_app.command("show")
def show_queue(context: typer.Context, queue: QueueArgument, json: JsonOption = False) -> None:
    """Show whose a queue is and who may do what with it."""
    _act(context, queue, lambda target: target.security(), json=json)


@queue_app.command("grant")
def grant_queue(
    context: typer.Context,
    queue: QueueArgument,
    who: WhoArgument,
    rights: QueueRights,
    json: JsonOption = False,
) -> None:
    """Allow somebody something with a queue, and show all rights."""
    _act(context, queue, lambda target: target.grant(who, *rights), json=json)


@queue_app.command("deny")
def deny_queue(
    context: typer.Context,
    queue: QueueArgument,
    who: WhoArgument,
    rights: QueueRights,
    json: JsonOption = False,
) -> None:
    """Deny somebody something with a queue, whatever others allow, and show all rights."""
    _act(context, queue, lambda target: target.deny(who, *rights), json=json)


@queue_app.command("revoke")
def revoke_queue(
    context: typer.Context,
    queue: QueueArgument,
    who: WhoArgument,
    rights: QueueRights = [],  # noqa: B006 -- typer copies it
    json: JsonOption = False,
) -> None:
    """Take back what was granted or denied to somebody by name: these rights, or all."""
    _act(context, queue, lambda target: target.revoke(who, *rights), json=json)


@queue_app.command("owner")
def own_queue(
    context: typer.Context,
    queue: QueueArgument,
    who: OwnerArgument = None,
    json: JsonOption = False,
) -> None:
    """Give a queue to somebody, or take it."""
    _act(context, queue, lambda target: _own(target, who), json=json)


@queue_app.command("reset")
def reset_queue(context: typer.Context, queue: QueueArgument, json: JsonOption = False) -> None:
    """Give a queue the rights of a new one; its owner stays."""
    _act(context, queue, lambda target: target.reset_security(), json=json)


# The queue manager.


@manager_app.command("show")
def show_manager(context: typer.Context, json: JsonOption = False) -> None:
    """Show who may do what with the queue manager."""
    _act(context, None, lambda target: target.security(), json=json)


@manager_app.command("grant")
def grant_manager(
    context: typer.Context, who: WhoArgument, rights: ManagerRights, json: JsonOption = False
) -> None:
    """Allow somebody something with the queue manager, and show all rights."""
    _act(context, None, lambda target: target.grant(who, *rights), json=json)


@manager_app.command("deny")
def deny_manager(
    context: typer.Context, who: WhoArgument, rights: ManagerRights, json: JsonOption = False
) -> None:
    """Deny somebody something with the queue manager, whatever others allow."""
    _act(context, None, lambda target: target.deny(who, *rights), json=json)


@manager_app.command("revoke")
def revoke_manager(
    context: typer.Context,
    who: WhoArgument,
    rights: ManagerRights = [],  # noqa: B006 -- typer copies it
    json: JsonOption = False,
) -> None:
    """Take back what was granted or denied to somebody by name: these rights, or all."""
    _act(context, None, lambda target: target.revoke(who, *rights), json=json)


@manager_app.command("owner")
def own_manager(
    context: typer.Context, who: OwnerArgument = None, json: JsonOption = False
) -> None:
    """Give the queue manager to somebody, or take it."""
    _act(context, None, lambda target: _own(target, who), json=json)


@manager_app.command("reset")
def reset_manager(context: typer.Context, json: JsonOption = False) -> None:
    """Give the queue manager the rights of a new one; its owner stays."""
    _act(context, None, lambda target: target.reset_security(), json=json)


def whoami(context: typer.Context, json: JsonOption = False) -> None:
    """Show who the queue manager takes you for, and within what bounds."""
    with connected(context) as manager:
        found = manager.caller()
    sids = [Sid(sid) for sid in found.sids]
    if json:
        print_json(
            {
                "name": found.name,
                "user": str(Sid(found.user)),
                "sids": [str(sid) for sid in sids],
                "scopes": found.scopes,
                "queues": found.queues,
            }
        )
        return
    print_facts(
        found.name,
        [
            ("user", f"{account_text(Sid(found.user))} ({Sid(found.user)})"),
            ("is also", ", ".join(account_text(sid) for sid in sids if sid != found.user)),
            ("scopes", "all" if found.scopes is None else ", ".join(found.scopes)),
            ("queues", ", ".join(found.queues) or "all"),
        ],
    )


# What both have in common.


def _act(
    context: typer.Context,
    queue: str | None,
    act: Callable[[Queue | QueueManager], Security],
    *,
    json: bool,
) -> None:
    """Do something about the rights on a queue, or on the queue manager, and show them all."""
    with connected(context) as manager:
        found = act(manager if queue is None else manager.queue(queue))
    if queue is None:
        _show("the queue manager", found, MANAGER_WORDS, json=json)
    else:
        _show(queue, found, QUEUE_WORDS, json=json)


def _own(target: Queue | QueueManager, who: Sid | None) -> Security:
    if who is not None:
        return target.set_owner(who)
    target.take_ownership()
    return target.security()


def _show(name: str, found: Security, words: Mapping[str, int], *, json: bool) -> None:
    owner = account_text(found.owner) if found.owner else None
    entries = None
    if found.descriptor.entries is not None:
        entries = [_entry_object(entry, words) for entry in found.descriptor.entries]
    if json:
        owner_sid = str(found.owner) if found.owner else None
        print_json({"on": name, "owner": owner, "owner_sid": owner_sid, "entries": entries})
        return
    typer.echo(f"{name} belongs to {owner or 'nobody'}")
    if entries is None:
        typer.echo("it has no access list: everybody may do everything")
        return
    columns: Columns = {
        "Who": "who",
        "Is": lambda entry: "allowed" if entry["allowed"] else "denied",
        "Rights": "rights",
        "SID": "sid",
    }
    print_list(entries, columns, "nobody else may do anything with it", json=False)


def _entry_object(entry: AccessEntry, words: Mapping[str, int]) -> JsonObject:
    return {
        "who": account_text(Sid(entry.user)),
        "sid": str(Sid(entry.user)),
        "allowed": not entry.is_denied,
        "rights": words_of(entry.rights, words),
        "inherited": entry.is_inherited,
    }
