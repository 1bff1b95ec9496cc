"""`openmsmq packet`: MSMQ packets made readable."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from openmsmq.analysis.transports import HTTP_PORTS, TCP_PORTS, UDP_PORTS, Ports
from openmsmq.capture.source import CaptureError
from openmsmq.cli.tools.packet_input import Record, read_records
from openmsmq.cli.tools.packet_text import as_json, print_summary, print_tree
from openmsmq.cli.views.console import Printer, fail
from openmsmq.model.identity import Guid
from openmsmq.wire import packets
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.text.tree import Kind

EXIT_MALFORMED: Final = 1
_AUTO: Final = "auto"

app: Final = typer.Typer(help="Read MSMQ packets.", no_args_is_help=True)


@app.command()
def decode(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|HEX|-",
            help="A capture (pcapng or pcap), a file with a packet in binary or hexadecimal, the "
            "packet itself in hexadecimal, or - for the standard input.",
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help=f"What the bytes are, when they do not say so themselves: {', '.join(Kind)}.",
        ),
    ] = _AUTO,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per packet.")] = False,
    summary: Annotated[bool, typer.Option("--summary", help="One line per packet.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Shorten nothing.")] = False,
    connection: Annotated[
        int | None, typer.Option(help="Only this TCP connection of a capture, counted from 1.")
    ] = None,
    tcp_port: Annotated[
        list[int] | None, typer.Option(help="TCP ports to follow instead of 1801.")
    ] = None,
    udp_port: Annotated[
        list[int] | None, typer.Option(help="UDP ports to follow instead of 3527 and 1801.")
    ] = None,
    http_port: Annotated[
        list[int] | None, typer.Option(help="Ports of HTTP to follow instead of 80 and 8080.")
    ] = None,
) -> None:
    """Show packets field by field, with offsets.

    Exit code 0: all was read. 1: some packets are malformed or missing, and were shown as far as
    they go. 2: the input could not be read.
    """
    if kind != _AUTO and kind not in set(Kind):
        fail(f"--kind {kind} is unknown; it can be {_AUTO}, {', '.join(Kind)}.")
    known = None if kind == _AUTO else Kind(kind)
    ports = Ports(
        frozenset(tcp_port or TCP_PORTS),
        frozenset(udp_port or UDP_PORTS),
        frozenset(http_port or HTTP_PORTS),
    )
    printer = Printer()
    sound, shown = True, False
    try:
        for record in read_records(source, known, ports):
            if connection is not None and record.connection != connection:
                continue
            shown = True
            sound = sound and record.sound
            _show(printer, record, json=json, summary=summary, full=full)
    except CaptureError as error:
        fail(f"{error}.")
    if connection is not None and not shown:
        fail(f"there is no TCP connection {connection} to show; --summary shows what there is.")
    if not sound:
        raise typer.Exit(EXIT_MALFORMED)


def _show(printer: Printer, record: Record, *, json: bool, summary: bool, full: bool) -> None:
    if json:
        typer.echo(as_json(record))
    elif summary:
        print_summary(printer, record)
    else:
        print_tree(printer, record, full=full)


@app.command()
def example() -> None:
    """Print a small user message in hexadecimal, to try `decode` on."""
    message = packets.UserMessage(
        UserHeader(
            Guid.parse("00112233-4455-6677-8899-aabbccddeeff"),
            sent_time_s=1_700_000_000,
            message_number=1,
            destination=DirectName(r"OS:beta\private$\orders"),
        ),
        MessageProperties.of("order 1".encode("utf-16-le"), "hello", body_type=8),
    )
    typer.echo(packets.encode(message).hex())
