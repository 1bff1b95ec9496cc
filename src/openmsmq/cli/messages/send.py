"""`openmsmq send`: messages into a queue."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from openmsmq.cli.messages.certificate import FileOption, existing_file
from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption, read_identifier
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import Bar, print_result, progress
from openmsmq.client.messages.properties import PROPERTIES
from openmsmq.model.limits import (
    PACKET_MAX_BYTES,
    PRIORITY_DEFAULT_LEVEL,
    REACH_QUEUE_DEFAULT_S,
    TRANSACTION_MAX_COUNT,
)
from openmsmq.model.message import ACK_REQUEST_WORDS, AuthenticationRequest

if TYPE_CHECKING:
    from openmsmq.client.blocking import Queue, QueueManager, Transaction
    from openmsmq.client.messages.certificates import Certificate
    from openmsmq.client.messages.outgoing import OutgoingMessage
    from openmsmq.model.identity import MessageId

BATCH_COUNT: Final = 10_000
"""Messages between two signs of progress."""

STANDARD_INPUT: Final = "-"
ACKNOWLEDGE_HELP: Final = f"Acknowledgments for the admin queue: {', '.join(ACK_REQUEST_WORDS)}."


class BodyFormat(StrEnum):
    """How a text becomes a body; the values are names of formatters."""

    ACTIVE_X = "active_x"
    XML = "xml"
    BYTES = "bytes"


class SignatureVersion(StrEnum):
    """Kinds of signatures that a sender can choose."""

    BEST = "best"
    EXACT = "exact"
    MSMQ_1 = "1.0"
    MSMQ_2 = "2.0"


_SIGNING: Final = {
    "certificate": "--certificate",
    "signature": "--signature",
    "hash_name": "--hash",
}
"""Parameters that mean nothing in a message without signature."""

SIGNATURES: Final = {
    SignatureVersion.BEST: AuthenticationRequest.ALWAYS,
    SignatureVersion.EXACT: AuthenticationRequest.EXACT,
    SignatureVersion.MSMQ_1: AuthenticationRequest.SIGNATURE_10,
    SignatureVersion.MSMQ_2: AuthenticationRequest.SIGNATURE_20,
}


class HashChoice(StrEnum):
    """Hashes of signatures; the values are those of the options of `[security]`."""

    SHA512 = "sha512"
    SHA256 = "sha256"
    SHA1 = "sha1"
    MD5 = "md5"


def property_option(name: str, help_text: str = "") -> Any:
    """Return the option that sets a property of the message."""
    row = PROPERTIES[name]
    return typer.Option(*row.flags, metavar=row.metavar, help=help_text or row.sent)


def send(
    context: typer.Context,
    queue: Annotated[
        str,
        typer.Argument(
            metavar="FORMATNAME",
            help=r"Where to: a path name such as 'private$\orders', or a format name; on another "
            r"computer 'DIRECT=OS:beta\private$\orders' or 'DIRECT=TCP:10.0.0.7\private$\orders'.",
        ),
    ],
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="The body.")] = None,
    body_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="File with the body; - for stdin.")
    ] = None,
    body_format: Annotated[
        BodyFormat,
        typer.Option(
            "--formatter",
            help="How --body is written: active_x as COM does (UTF-16), xml as "
            "XmlMessageFormatter of .NET does, bytes as plain UTF-8.",
        ),
    ] = BodyFormat.ACTIVE_X,
    label: Annotated[str, property_option("label")] = "",
    recoverable: Annotated[bool, property_option("recoverable")] = False,
    transactional: Annotated[
        bool,
        typer.Option("--transactional", help="In a transaction, as transactional queues need it."),
    ] = False,
    priority: Annotated[int, property_option("priority")] = PRIORITY_DEFAULT_LEVEL,
    journal_on_success: Annotated[bool, property_option("journal_on_success")] = False,
    journal_on_failure: Annotated[bool, property_option("journal_on_failure")] = False,
    dead_letter_queue: Annotated[str | None, property_option("dead_letter_queue")] = None,
    acknowledge: Annotated[str, property_option("acknowledge", ACKNOWLEDGE_HELP)] = "none",
    admin_queue: Annotated[str | None, property_option("admin_queue")] = None,
    response_queue: Annotated[str | None, property_option("response_queue")] = None,
    correlation_id: Annotated[
        str | None,
        property_option(
            "correlation_id",
            r"Identifier of the message that it answers: {guid}\number, or 40 digits.",
        ),
    ] = None,
    time_to_reach_queue_s: Annotated[
        float, property_option("time_to_reach_queue_s")
    ] = REACH_QUEUE_DEFAULT_S,
    time_to_be_received_s: Annotated[float | None, property_option("time_to_be_received_s")] = None,
    extension_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="File with the extension.")
    ] = None,
    application_tag: Annotated[int, property_option("application_tag")] = 0,
    sign: Annotated[
        bool,
        typer.Option(
            "--sign",
            help="Sign it with a certificate; `openmsmq certificate` makes and registers one.",
        ),
    ] = False,
    certificate: FileOption = "",
    signature: Annotated[
        SignatureVersion,
        typer.Option(
            help="Kind of signature: exact for queue managers of ours, 2.0 for those of Windows, "
            "1.0 for Windows NT; best is exact where all of the directory are ours, else 2.0."
        ),
    ] = SignatureVersion.BEST,
    hash_name: Annotated[
        HashChoice, typer.Option("--hash", help="Hash of the signature.")
    ] = HashChoice.SHA512,
    encrypt: Annotated[
        bool,
        typer.Option(
            "--encrypt",
            help="Encrypt the body, so that only the queue manager of the queue can read it. The "
            "queue is named by PUBLIC= or PRIVATE=, or by the path of a public queue.",
        ),
    ] = False,
    count: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Send it so often; in one transaction if in any."),
    ] = 1,
    json: JsonOption = False,
) -> None:
    """Send a message and show its identifier, once it is as safe as it asks to be.

    For another computer that is when an outgoing queue here has it: `outgoing show` says how far
    it is. Give --transactional if the queue there is transactional; others refuse such messages.
    """
    # Other commands do not pay for loading the client.
    from openmsmq.client.messages.outgoing import OutgoingMessage

    if body is not None and body_file is not None:
        fail("--body and --body-file are two bodies for one message: give one of them.")
    if body is None and body_file is None:
        fail("a message needs a body: give --body TEXT or --body-file FILE.")
    acknowledgments = read_acknowledge(acknowledge)
    if acknowledgments and admin_queue is None:
        fail(f"--ack {acknowledge} needs --admin-queue: it says where acknowledgments go.")
    _require_sign_for_its_options(context, sign=sign)
    if transactional and count > TRANSACTION_MAX_COUNT:
        fail(f"--count {count}: one transaction holds {TRANSACTION_MAX_COUNT} messages.")
    content = read_body(body, body_file, body_format)
    options: dict[str, Any] = (
        {} if extension_file is None else {"extension": read_file(extension_file)}
    )
    with connected(context) as manager:
        if correlation_id is not None:
            options["correlation_id"] = read_identifier(correlation_id)
        if sign:
            options["certificate"] = _certificate(certificate, hash_name)
            options["signature"] = SIGNATURES[signature]
        message = OutgoingMessage(
            body=content,
            encrypt=encrypt,
            label=label,
            priority=priority,
            recoverable=recoverable,
            response_queue=response_queue,
            admin_queue=admin_queue,
            acknowledge=acknowledgments,
            time_to_reach_queue_s=time_to_reach_queue_s,
            time_to_be_received_s=time_to_be_received_s,
            journal_on_failure=journal_on_failure,
            dead_letter_queue=dead_letter_queue,
            journal_on_success=journal_on_success,
            application_tag=application_tag,
            **options,
        )
        target = manager.queue(queue, formatter=BodyFormat.BYTES if body_file else body_format)
        for identifier in _sent(manager, target, message, count, transactional=transactional):
            found = {"message_id": str(identifier), "queue": target.name}
            print_result(found, str(identifier), json=json)


def _require_sign_for_its_options(context: typer.Context, *, sign: bool) -> None:
    """Nobody should believe that a message was signed which was not."""
    for name, option in _SIGNING.items():
        source = context.get_parameter_source(name)
        # A variable may name the certificate for all commands.
        if not sign and source is not None and source.name == "COMMANDLINE":
            fail(f"{option} is for signed messages: give --sign, too.")


def _certificate(file: str, hash_name: HashChoice) -> Certificate:
    from openmsmq.client.messages.certificates import Certificate
    from openmsmq.security.algorithm_names import HASHES

    return Certificate.load(existing_file(file), HASHES[hash_name])


def read_acknowledge(text: str) -> int:
    """Return what a name of `--acknowledge` asks for."""
    if text not in ACK_REQUEST_WORDS:
        fail(f"--ack {text} is unknown; it can be {', '.join(ACK_REQUEST_WORDS)}.")
    return ACK_REQUEST_WORDS[text]


def read_body(text: str | None, file: str | None, body_format: BodyFormat) -> str | bytes:
    """Return the body that somebody has typed, or has in a file."""
    if file is not None:
        return read_file(file)
    assert text is not None
    return text.encode() if body_format is BodyFormat.BYTES else text


def read_file(name: str) -> bytes:
    """Read a file for a message, or the standard input; stops with a sentence if that fails."""
    try:
        if name == STANDARD_INPUT:
            if sys.stdin is None:
                fail("the standard input is closed.")
            data = sys.stdin.buffer.read(PACKET_MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(PACKET_MAX_BYTES + 1)
    except OSError as error:
        fail(f"{name} cannot be read: {error.strerror}.")
    if len(data) > PACKET_MAX_BYTES:
        fail(f"{name} is too large: a message has at most {PACKET_MAX_BYTES} bytes.")
    return data


def _sent(
    manager: QueueManager,
    queue: Queue,
    message: OutgoingMessage,
    count: int,
    *,
    transactional: bool,
) -> Iterator[MessageId]:
    # Other commands do not pay for loading the client.
    from openmsmq.client.verbs.transactions import SINGLE_MESSAGE

    if count == 1:
        yield queue.send(message, transaction=SINGLE_MESSAGE if transactional else None)
        return
    with progress(f"Sending to {queue.name}", count) as bar:
        if not transactional:
            yield from _in_batches(queue, message, count, bar, None)
            return
        with manager.transaction() as transaction:
            identifiers = list(_in_batches(queue, message, count, bar, transaction))
    # Only now they are sent.
    yield from identifiers


def _in_batches(
    queue: Queue,
    message: OutgoingMessage,
    count: int,
    bar: Bar,
    transaction: Transaction | None,
) -> Iterator[MessageId]:
    copies = repeat(message, count)
    while batch := list(islice(copies, BATCH_COUNT)):
        yield from queue.send_many(
            batch,
            transaction=transaction,
            certificate=message.certificate,
            signature=message.signature,
            encrypt=message.encrypt,
        )
        bar.advance(len(batch))
