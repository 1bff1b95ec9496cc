"""Which messages a command reads, and reading them so that none is lost on the way out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
import typer

from openmsmq.cli.options.connecting import EXIT_NO_MESSAGE
from openmsmq.cli.views.console import fail, say_error
from openmsmq.cli.views.output import count_text
from openmsmq.model.errors import InvalidParameter, ReceiveTimeout, RemoteMachineNotAvailable
from openmsmq.model.identity import MessageId
from openmsmq.model.queue import SeekAction

if TYPE_CHECKING:
    from openmsmq.client.blocking import Queue, QueueManager, Transaction
    from openmsmq.client.messages.received import ReceivedMessage

BATCH_MAX_COUNT: Final = 100
"""Messages that are received in one transaction, and shown before it is committed."""

SEARCHED_MAX_COUNT: Final = 100_000
"""Messages that a search for a text looks at."""

QueueArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help=r"Path name or format name, such as 'private$\orders' or 'system$;deadletter'.",
    ),
]
AllOption: TypeAlias = Annotated[bool, typer.Option("--all", help="All messages that are there.")]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="One JSON object a line, for programs.")
]
TimeoutOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        help="How long to wait for each message; inf waits for ever.",
    ),
]
CountOption: TypeAlias = Annotated[
    int | None, typer.Option("--count", metavar="N", min=1, help="How many messages at most.")
]
IdOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="Only the message with this identifier."),
]
CorrelationOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--correlation-id", metavar="ID", help="Only the first message that answers this one."
    ),
]
LookupOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--lookup-id", metavar="N", help="Only the message with this lookup identifier."),
]
SeekOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--seek",
        metavar="WHICH",
        help="Seen from --lookup-id: previous, current or next; without it, first or last.",
    ),
]


class Choice(msgspec.Struct, frozen=True):
    """Which messages of a queue are meant, as the options of a command say it."""

    count: int | None = 1
    """None for all of them."""
    timeout_s: float | None = 0
    """None for ever."""
    message_id: str | None = None
    correlation_id: str | None = None
    lookup_id: int | None = None
    seek: str | None = None

    @property
    def is_one(self) -> bool:
        """Whether an option points at one message, wherever in the queue it is."""
        return bool(self.message_id or self.correlation_id or self.seek) or (
            self.lookup_id is not None
        )


def choose(
    *,
    count: int | None = 1,
    timeout: float = 0,
    message_id: str | None = None,
    correlation_id: str | None = None,
    lookup_id: int | None = None,
    seek: str | None = None,
) -> Choice:
    """Check the options that choose messages; stops with a sentence when they make no sense."""
    if math.isnan(timeout) or timeout < 0:
        fail(f"--timeout {timeout}: give the seconds to wait, 0 or more, or inf.")
    pointers = {
        "--id": message_id is not None,
        "--correlation-id": correlation_id is not None,
        "--lookup-id or --seek": lookup_id is not None or seek is not None,
    }
    given = [name for name, is_given in pointers.items() if is_given]
    if len(given) > 1:
        fail(f"{' and '.join(given)} point at different messages: give one of them.")
    if seek is not None:
        seek = _checked_seek(seek, lookup_id)
    return Choice(
        count,
        None if math.isinf(timeout) else timeout,
        message_id,
        correlation_id,
        lookup_id,
        seek,
    )


def wanted_count(count: int | None, everything: bool) -> int | None:
    """Return how many messages --count and --all ask for; None for all."""
    if everything and count is not None:
        fail("--count and --all say different things: give one of them.")
    return None if everything else count or 1


def _checked_seek(seek: str, lookup_id: int | None) -> str:
    known = [action.value for action in SeekAction]
    if seek not in known:
        fail(f"--seek {seek} is unknown; it can be {', '.join(known)}.")
    ends = (SeekAction.FIRST.value, SeekAction.LAST.value)
    if (lookup_id is None) != (seek in ends):
        fail(f"--seek {seek} {'needs' if lookup_id is None else 'takes no'} --lookup-id.")
    return seek


def read_identifier(text: str) -> bytes:
    r"""Read a message identifier: `{guid}\number`, or its 20 bytes in hexadecimal."""
    try:
        return MessageId.read(text).to_bytes()
    except ValueError as error:
        raise InvalidParameter(str(error)) from None


def look(queue: Queue, choice: Choice) -> Iterator[ReceivedMessage]:
    """Look at the chosen messages and leave them; `ReceiveTimeout` when there is none."""
    if choice.message_id is not None:
        yield queue.peek_by_id(read_identifier(choice.message_id), choice.timeout_s)
    elif choice.correlation_id is not None:
        identifier = read_identifier(choice.correlation_id)
        yield queue.peek_by_correlation_id(identifier, choice.timeout_s)
    elif choice.is_one:
        yield queue.peek_by_lookup_id(choice.lookup_id or 0, choice.seek or SeekAction.CURRENT)
    else:
        first = queue.peek(choice.timeout_s)
        if choice.count == 1:
            yield first
            return
        for number, message in enumerate(queue.browse(), 1):
            yield message
            if number == choice.count:
                return


def search(queue: Queue, choice: Choice, text: str) -> Iterator[ReceivedMessage]:
    """Look for messages with a text in body or label, from the front.

    Bodies are compared as they are, with the text in UTF-8 and in UTF-16.
    """
    wanted = (text.encode("utf-8"), text.encode("utf-16-le"))
    found_count = looked_count = 0
    for message in islice(queue.browse(), SEARCHED_MAX_COUNT):
        looked_count += 1
        if text in message.label or any(each in message.body_bytes for each in wanted):
            found_count += 1
            yield message
            if found_count == choice.count:
                return
    if looked_count == SEARCHED_MAX_COUNT:
        say_error(f"looked at the first {SEARCHED_MAX_COUNT} messages, and no further.")
    if not found_count:
        say_error(f"none of {count_text(looked_count)} in {queue.name} has {text!r}.")
        raise typer.Exit(EXIT_NO_MESSAGE)


def take(
    manager: QueueManager,
    queue: Queue,
    choice: Choice,
    show: Callable[[ReceivedMessage], None],
) -> int:
    """Receive the chosen messages and show each; gives how many.

    From a transactional queue they are received in transactions that are committed only after
    their messages were shown: when the output breaks, they are still in the queue.
    """
    transactional = _is_transactional(queue)
    taken = 0
    while choice.count is None or taken < choice.count:
        wanted = BATCH_MAX_COUNT if choice.count is None else choice.count - taken
        try:
            if transactional:
                taken += _take_in_transaction(manager, queue, choice, wanted, show)
            else:
                show(_receive_one(queue, choice, None))
                taken += 1
        except ReceiveTimeout:
            if not taken:
                raise
            break
        if choice.is_one:
            break
    return taken


def _is_transactional(queue: Queue) -> bool:
    try:
        return queue.properties().transactional
    except RemoteMachineNotAvailable:
        # A queue of another computer, which is read without transactions (decision 0048).
        return False


def _take_in_transaction(
    manager: QueueManager,
    queue: Queue,
    choice: Choice,
    wanted: int,
    show: Callable[[ReceivedMessage], None],
) -> int:
    with manager.transaction() as transaction:
        if choice.is_one or wanted == 1:
            messages = [_receive_one(queue, choice, transaction)]
        else:
            messages = queue.receive_many(
                min(wanted, BATCH_MAX_COUNT), choice.timeout_s, transaction=transaction
            )
        for message in messages:
            show(message)
    return len(messages)


def _receive_one(queue: Queue, choice: Choice, transaction: Transaction | None) -> ReceivedMessage:
    if choice.message_id is not None:
        return queue.receive_by_id(
            read_identifier(choice.message_id), choice.timeout_s, transaction=transaction
        )
    if choice.correlation_id is not None:
        identifier = read_identifier(choice.correlation_id)
        return queue.receive_by_correlation_id(
            identifier, choice.timeout_s, transaction=transaction
        )
    if choice.is_one:
        return queue.receive_by_lookup_id(
            choice.lookup_id or 0, choice.seek or SeekAction.CURRENT, transaction=transaction
        )
    return queue.receive(choice.timeout_s, transaction=transaction)
