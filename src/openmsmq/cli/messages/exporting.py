"""`openmsmq queue export` and `openmsmq queue import`: a queue to a file and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from openmsmq.cli.options.connecting import EXIT_FAILED, connected
from openmsmq.cli.options.reading import JsonOption, QueueArgument
from openmsmq.cli.views.console import fail, say_error
from openmsmq.cli.views.output import Bar, count_text, print_result, progress, size_text
from openmsmq.client.errors import ConnectionLost
from openmsmq.client.messages.queue_file import (
    FileCut,
    Origin,
    QueueFileError,
    QueueFileWriter,
    read_origin,
    read_packets,
)
from openmsmq.model.errors import MsmqError, ReceiveTimeout
from openmsmq.model.limits import PACKET_MAX_BYTES, TRANSACTION_MAX_BYTES, TRANSACTION_MAX_COUNT

if TYPE_CHECKING:
    from openmsmq.api.messages import Entry, QueueStatus
    from openmsmq.client.blocking import Queue, QueueManager

EXPORT_BATCH_COUNT: Final = 1000
"""Messages that are on the disk before they leave the queue."""

IMPORT_BATCH_COUNT: Final = 250
"""Messages that one call sends."""

IMPORT_BATCH_BYTES: Final = 1 << 20
"""Bytes after which a call takes no more messages."""

TRANSACTION_COUNT: Final = TRANSACTION_MAX_COUNT - IMPORT_BATCH_COUNT
"""Messages after which a transaction takes no further call."""

TRANSACTION_BYTES: Final = TRANSACTION_MAX_BYTES - IMPORT_BATCH_BYTES - PACKET_MAX_BYTES
"""Bytes after which a transaction takes no further call."""

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="The file.")]


def fetched(queue: Queue, status: QueueStatus, count: int) -> Iterator[list[Entry]]:
    """Yield the messages that were there, so many at a time, oldest arrival first."""
    start, stop = 0, status.last_arrival_number + 1
    while entries := queue.fetch_range(start, stop, count):
        yield entries
        start = entries[-1].arrival_number + 1


# Export.


def export(
    context: typer.Context,
    queue: QueueArgument,
    file: FileArgument,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the messages in the queue: a copy.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Write the messages of a queue to a new file, and take them out of the queue.

    Messages leave the queue only after they are safe in the file. When this is interrupted, some
    may be in both, and none is lost; `queue import --cut` takes what an unfinished file has.
    """
    with connected(context) as manager:
        source = manager.queue(queue)
        status = source.properties()
        try:
            with (
                open(file, "xb") as opened,
                progress(f"Exporting {queue}", status.message_count) as bar,
            ):
                work = _Export(manager, source, status, opened, bar)
                work.run(keep=keep)
        except ConnectionLost:
            raise
        except FileExistsError:
            fail(f"{file} exists already: give the name of a new file.")
        except OSError as error:
            say_error(f"{file} cannot be written: {error.strerror}; nothing is lost.")
            raise typer.Exit(EXIT_FAILED) from None
    size = size_text(work.writer.size_bytes)
    left = f"; others hold or took {work.left_count} of them" if work.left_count else ""
    print_result(
        {
            "queue": queue,
            "file": file,
            "exported": work.writer.count,
            "exported_bytes": work.writer.size_bytes,
            "left": work.left_count,
        },
        f"exported {count_text(work.writer.count)} ({size}) from {queue} to {file}{left}",
        json=json,
    )


class _Export:
    """One export under way."""

    def __init__(
        self,
        manager: QueueManager,
        queue: Queue,
        status: QueueStatus,
        file: BinaryIO,
        bar: Bar,
    ) -> None:
        self._manager = manager
        self._queue = queue
        self._status = status
        self._file = file
        self._bar = bar
        self.left_count = 0
        """Messages in the file that are not ours to take out of the queue."""
        self.writer = QueueFileWriter(
            file,
            Origin(
                status.path_name,
                manager.name,
                str(manager.context.manager),
                status.transactional,
            ),
        )

    def run(self, *, keep: bool) -> None:
        if self._status.transactional and not keep:
            while self._receive_batch():
                pass
        else:
            for entries in fetched(self._queue, self._status, EXPORT_BATCH_COUNT):
                self._write(entry.packet for entry in entries)
                if not keep:
                    self._sync()
                    first, last = entries[0].arrival_number, entries[-1].arrival_number
                    self.left_count += len(entries) - self._queue.remove_range(first, last + 1)
        self.writer.finish()
        self._sync()

    def _receive_batch(self) -> bool:
        try:
            with self._manager.transaction() as transaction:
                messages = self._queue.receive_many(EXPORT_BATCH_COUNT, 0, transaction=transaction)
                self._write(message.packet_bytes for message in messages)
                self._sync()
        except ReceiveTimeout:
            return False
        return True

    def _write(self, packets: Iterable[bytes]) -> None:
        before = self.writer.count
        for packet in packets:
            self.writer.write(packet)
        self._bar.advance(self.writer.count - before)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


# Import.


def import_(
    context: typer.Context,
    queue: QueueArgument,
    file: FileArgument,
    skip: Annotated[
        int, typer.Option(metavar="N", min=0, help="Leave out the first messages.")
    ] = 0,
    cut: Annotated[
        bool, typer.Option("--cut", help="Take what is there of a file without its end.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Send the messages of a file that `queue export` wrote to a queue.

    The file is verified before the first message is sent. They get new identifiers and times;
    everything else stays. A transactional queue gets them in a transaction, or in several when
    there are more than one can hold. When only some could be sent, the command says how many.
    """
    # The whole file is read once before anything is sent.
    total = sum(1 for _ in _packets(file, cut=cut)) - skip
    if total < 0:
        fail(f"--skip {skip}: {file} has only {count_text(total + skip)}.")
    with connected(context) as manager, progress(f"Importing {file}", total) as bar:
        work = _Import(manager, manager.queue(queue), bar)
        try:
            work.run(islice(_packets(file, cut=cut), skip, None))
        except (MsmqError, ConnectionLost) as error:
            error.add_note(
                f"{work.sent_count} of {count_text(total)} were sent before; --skip "
                f"{skip + work.sent_count} goes on behind them."
            )
            raise
    sentence = f"imported {count_text(work.sent_count)} from {file} to {queue}"
    print_result({"queue": queue, "file": file, "imported": work.sent_count}, sentence, json=json)


class _Import:
    """One import under way."""

    def __init__(self, manager: QueueManager, queue: Queue, bar: Bar) -> None:
        self._manager = manager
        self._queue = queue
        self._bar = bar
        self.sent_count = 0

    def run(self, packets: Iterable[bytes]) -> None:
        # Other commands do not pay for loading the client.
        from openmsmq.client.messages.again import PacketRewriter

        status = self._queue.properties()
        rewriter = PacketRewriter(
            transactional=status.transactional, format_name=status.format_name
        )
        batches = _batches(map(rewriter.rewrite, packets))
        if not status.transactional:
            for batch in batches:
                self._queue.send_packets(batch)
                self._bar.advance(len(batch))
                self.sent_count += len(batch)
            return
        more = True
        while more:
            count = size = 0
            with self._manager.transaction() as transaction:
                more = False
                for batch in batches:
                    self._queue.send_packets(batch, transaction=transaction)
                    self._bar.advance(len(batch))
                    count += len(batch)
                    size += sum(map(len, batch))
                    more = count >= TRANSACTION_COUNT or size >= TRANSACTION_BYTES
                    if more:
                        break
            self.sent_count += count


def _batches(packets: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for packet in packets:
        batch.append(packet)
        size += len(packet)
        if len(batch) == IMPORT_BATCH_COUNT or size >= IMPORT_BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _packets(file: str, *, cut: bool) -> Iterator[bytes]:
    try:
        with open(file, "rb") as opened:
            read_origin(opened)
            yield from read_packets(opened)
    except FileCut as error:
        if not cut:
            fail(f"{file}: {error}; --cut takes what is there. Nothing was sent.")
    except QueueFileError as error:
        fail(f"{file}: {error}. Nothing was sent.")
    except ConnectionLost:
        raise
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}.")
