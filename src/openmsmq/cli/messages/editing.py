"""`openmsmq message edit`: a message changed into a new one."""

from __future__ import annotations

import math
from base64 import b64encode
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from openmsmq.cli.messages.again import DryRunOption, chosen_one, look_at
from openmsmq.cli.messages.send import (
    ACKNOWLEDGE_HELP,
    BodyFormat,
    property_option,
    read_acknowledge,
    read_body,
    read_file,
)
from openmsmq.cli.options.connecting import run_connected
from openmsmq.cli.options.reading import (
    IdOption,
    JsonOption,
    LookupOption,
    QueueArgument,
    read_identifier,
)
from openmsmq.cli.views.console import YesOption, ask_before, fail, is_asked, safe
from openmsmq.cli.views.output import JsonObject, print_json, print_result, size_text
from openmsmq.client.messages.properties import PROPERTIES
from openmsmq.model.errors import MessageNotFound
from openmsmq.model.identity import MessageId
from openmsmq.model.message import BodyType

if TYPE_CHECKING:
    from openmsmq.client.aio import Queue, QueueManager
    from openmsmq.client.messages.outgoing import OutgoingMessage, SendOptions
    from openmsmq.client.messages.received import ReceivedMessage
    from openmsmq.client.operating.editing import Difference
    from openmsmq.client.verbs.transactions import TransactionLike

_NOWHERE: Final = "Empty for none."


def _switch(name: str) -> Any:
    """Return the option that turns a property on or off."""
    row = PROPERTIES[name]
    word = row.flags[0].removeprefix("--")
    return typer.Option(f"--{word}/--no-{word}", help=row.sent)


def _limit(name: str) -> Any:
    row = PROPERTIES[name]
    return typer.Option(*row.flags, metavar="SECONDS", help=f"{row.meaning} inf for no limit.")


def edit(
    context: typer.Context,
    queue: QueueArgument,
    message_id: IdOption = None,
    lookup_id: LookupOption = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="QUEUE", help="Where to send it; without, to the queue it is in."),
    ] = None,
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="The new body.")] = None,
    body_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with the new body, as bytes; - for stdin."),
    ] = None,
    body_format: Annotated[
        BodyFormat, typer.Option("--formatter", help="How --body is written, as for `send`.")
    ] = BodyFormat.ACTIVE_X,
    label: Annotated[str | None, property_option("label")] = None,
    priority: Annotated[int | None, property_option("priority")] = None,
    recoverable: Annotated[bool | None, _switch("recoverable")] = None,
    journal_on_success: Annotated[bool | None, _switch("journal_on_success")] = None,
    journal_on_failure: Annotated[bool | None, _switch("journal_on_failure")] = None,
    acknowledge: Annotated[str | None, property_option("acknowledge", ACKNOWLEDGE_HELP)] = None,
    admin_queue: Annotated[
        str | None, property_option("admin_queue", f"Where acknowledgments go. {_NOWHERE}")
    ] = None,
    response_queue: Annotated[
        str | None, property_option("response_queue", f"Where answers go. {_NOWHERE}")
    ] = None,
    correlation_id: Annotated[
        str | None, property_option("correlation_id", "The message that it answers.")
    ] = None,
    time_to_reach_queue_s: Annotated[float | None, _limit("time_to_reach_queue_s")] = None,
    time_to_be_received_s: Annotated[float | None, _limit("time_to_be_received_s")] = None,
    extension_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="File with the new extension.")
    ] = None,
    application_tag: Annotated[int | None, property_option("application_tag")] = None,
    take_out: Annotated[
        bool,
        typer.Option("--take-out", help="Take out the message that it was, when it is sent."),
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Change a message and send it as a new one; at a terminal, show what changes and ask first.

    What no option names stays as it was. The message that it was stays too, unless --take-out is
    given: then it leaves in the same transaction, if both queues are transactional. What is signed
    or encrypted cannot stay so: a signature is left out, an encrypted message is refused.
    """
    choice = chosen_one(message_id, lookup_id)
    given: dict[str, object] = {
        "label": label,
        "priority": priority,
        "recoverable": recoverable,
        "journal_on_success": journal_on_success,
        "journal_on_failure": journal_on_failure,
        "acknowledge": None if acknowledge is None else read_acknowledge(acknowledge),
        "application_tag": application_tag,
        "extension": None if extension_file is None else read_file(extension_file),
    }
    changes: Any = {name: value for name, value in given.items() if value is not None}
    queues = {"admin_queue": admin_queue, "response_queue": response_queue}
    changes |= {name: text or None for name, text in queues.items() if text is not None}
    limits = {
        "time_to_reach_queue_s": time_to_reach_queue_s,
        "time_to_be_received_s": time_to_be_received_s,
    }
    changes |= {
        name: None if limit_s == math.inf else limit_s
        for name, limit_s in limits.items()
        if limit_s is not None
    }
    changes |= _body_changes(body, body_file, body_format)
    if not changes and to is None and correlation_id is None:
        fail("what is to be changed? Give at least one of the options of `message edit --help`.")

    async def work(manager: QueueManager) -> None:
        # Inside, so that a bad one is told like any other error.
        if correlation_id is not None:
            changes["correlation_id"] = read_identifier(correlation_id)
        async with manager.queue(queue) as source:
            message = await look_at(source, choice)
        await _Edit(manager, queue, to or queue, message, changes).run(
            take_out=take_out, dry_run=dry_run, yes=yes, json=json
        )

    run_connected(context, work)


def _body_changes(text: str | None, file: str | None, body_format: BodyFormat) -> dict[str, object]:
    # Other commands do not pay for loading the client.
    from openmsmq.client.formatters import find_formatter

    if text is not None and file is not None:
        fail("--body and --body-file are two bodies for one message: give one of them.")
    if text is None and file is None:
        return {}
    content = read_body(text, file, body_format)
    if isinstance(content, bytes):
        return {"body": content, "body_type": int(BodyType.UNSPECIFIED)}
    body_type, body = find_formatter(body_format).write(content)
    return {"body": body, "body_type": body_type}


class _Edit:
    """A message that is being changed."""

    def __init__(
        self,
        manager: QueueManager,
        source: str,
        target: str,
        message: ReceivedMessage,
        changes: SendOptions,
    ) -> None:
        # Other commands do not pay for loading the client.
        from openmsmq.client.operating.editing import differences, edited, like

        self._manager = manager
        self._source = source
        self._target = target
        self._message = message
        self._before = like(message)
        self._after = edited(message, changes)
        self._differences = differences(self._before, self._after)

    async def run(self, *, take_out: bool, dry_run: bool, yes: bool, json: bool) -> None:
        from openmsmq.client.operating.resending import find_way, send_again, send_copy

        message = self._message
        way = await find_way(self._manager, self._source, self._target)
        told: JsonObject = {
            "message_id": str(message.id),
            "from": self._source,
            "to": self._target,
            "transactional": way.is_transactional(message),
            "takes_out": take_out,
            "changes": {each.name: _pair(each) for each in self._differences},
        }
        if (dry_run and not json) or is_asked(yes=yes):
            self._print_differences()
        if dry_run:
            if json:
                print_json({**told, "dry_run": True})
            else:
                typer.echo(f"would send this to {self._target}; nothing was done")
            return
        ask_before(f"Send this to {self._target}{' and take it out' * take_out}?", yes=yes)

        async def send(
            target: Queue, _: ReceivedMessage, transaction: TransactionLike
        ) -> MessageId:
            return await target.send(self._after, transaction=transaction)

        sent: MessageId | None
        if take_out:
            sent = await send_again(self._manager, way, message.lookup_id, str(message.id), send)
            if sent is None:
                raise MessageNotFound("somebody else has taken it meanwhile: nothing was sent")
        else:
            sent = await send_copy(self._manager, way, message, send)
        stays = "taken out here" if take_out else "the message here stays"
        sentence = f"sent to {self._target} as {sent}; {stays}"
        print_result({**told, "sent_as": str(sent)}, sentence, json=json)

    def _print_differences(self) -> None:
        if not self._differences:
            typer.echo("nothing is different but where it goes")
        for each in self._differences:
            if each.name == "body":
                self._print_bodies()
            elif each.name != "body_type":
                typer.echo(safe(f"{each.name}: {_shown(each.before)} -> {_shown(each.after)}"))

    def _print_bodies(self) -> None:
        from openmsmq.client.operating.editing import body_difference, text_of

        lines = body_difference(text_of(self._before), text_of(self._after))
        if not lines:
            sizes = [_size(each) for each in (self._before, self._after)]
            typer.echo(f"body: {sizes[0]} -> {sizes[1]}")
            return
        typer.echo("body:")
        for line in lines:
            typer.echo(f"  {safe(line)}")


def _size(message: OutgoingMessage) -> str:
    return size_text(len(message.body)) if isinstance(message.body, bytes) else "text"


def _pair(difference: Difference) -> list[object]:
    return [_plain(difference.before), _plain(difference.after)]


def _plain(value: object) -> object:
    match value:
        case bytes():
            return b64encode(value).decode()
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def _shown(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case bytes():
            return value.hex() or "empty" if len(value) <= 20 else size_text(len(value))
        case str():
            return repr(value)
        case _:
            return str(value)
