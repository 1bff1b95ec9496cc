"""Each property has one row: its public names are written down here once more, by hand."""

from __future__ import annotations

import pytest
import typer.main

from openmsmq.api.messages import Entry
from openmsmq.cli.app import app
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder, SendOptions
from openmsmq.client.messages.properties import PLAIN, PROPERTIES
from openmsmq.client.messages.property import Kind
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.wire.errors import DecodeError

NAMES = """
arrival_number       NUMBER  column  -
lookup_id            NUMBER  column  -
arrived_time         TIME    column  -
abort_count          SMALL   column  -
move_count           SMALL   column  -
moved_time           TIME    column  -
message_id           TEXT    column  -
source_qm            TEXT    column  -
sent_time            TIME    column  -
sender_id            BYTES   column  -
sender_sid           TEXT    -       -
sender_certificate   BYTES   column  -
authenticated        YES_NO  column  -
authentication       TEXT    -       -
label                TEXT    column  rows      --label
body                 BYTES   column  rows
body_type            NUMBER  column  rows
text                 TEXT    column  -
extension            BYTES   column  rows
headers              PAIRS   column  programs
application_tag      NUMBER  column  rows      --application-tag --app-tag
correlation_id       TEXT    column  rows      --correlation-id
message_class        SMALL   column  programs
message_class_name   TEXT    column  -
priority             SMALL   column  rows      --priority
recoverable          YES_NO  column  programs  --recoverable
transactional        YES_NO  column  -
first_in_transaction YES_NO  column  -
last_in_transaction  YES_NO  column  -
transaction_id       TEXT    column  -
destination          TEXT    column  -
response_queue       TEXT    column  rows      --response-queue
admin_queue          TEXT    column  rows      --admin-queue
dead_letter_queue    TEXT    column  rows      --dead-letter-queue --deadletter-queue
acknowledge          SMALL   column  rows      --acknowledge --ack
journal_on_failure   YES_NO  column  rows      --journal-on-failure --deadletter
journal_on_success   YES_NO  column  rows      --journal-on-success --journal
time_to_reach_queue_s NUMBER column  rows      --time-to-reach-queue
time_to_be_received_s NUMBER column  rows      --time-to-be-received
privacy              SMALL   -       -
encrypted            YES_NO  column  -
traced               YES_NO  column  -
hop_count            SMALL   column  -
connector_type       TEXT    column  programs
"""
"""Key and column, kind, whether Spark has it, who can set it, and the options that do."""
WRITTEN = {line.split()[0]: line.split()[1:] for line in NAMES.strip().splitlines()}
BESIDE = {"trace_queue", "certificate", "signature", "encrypt"}
"""What a sender can say that is no property of the message that arrives."""


def test_the_rows_have_the_names_that_programs_rely_on() -> None:
    assert list(PROPERTIES) == list(WRITTEN)
    for key, row in PROPERTIES.items():
        setter = "-" if not row.sent else "rows" if row.is_set_by_rows else "programs"
        column = "column" if row.is_column else "-"
        assert [row.kind.name, column, setter, *row.flags] == WRITTEN[key], key
        assert row.name == {"body": "body_bytes"}.get(key, key)


def test_only_headers_are_no_key_of_json() -> None:
    assert [*PLAIN, "headers"] == [*(key for key in WRITTEN if key != "headers"), "headers"]


def test_a_received_message_has_an_attribute_for_each_row() -> None:
    for row in PROPERTIES.values():
        assert getattr(ReceivedMessage, row.name).__doc__ == row.meaning
    assert ReceivedMessage.id.fget is ReceivedMessage.message_id.fget  # type: ignore[attr-defined]


def test_an_outgoing_message_has_a_field_for_each_row_that_can_be_sent() -> None:
    sendable = {key for key, row in PROPERTIES.items() if row.sent}
    assert set(OutgoingMessage.__struct_fields__) == sendable | BESIDE
    assert SendOptions.__annotations__.keys() == (sendable | BESIDE) - {"body"}


def test_send_has_an_option_for_each_row_that_names_one() -> None:
    command = typer.main.get_command(app).commands["send"]  # type: ignore[attr-defined]
    options = {each.name: each for each in command.params}
    for key, row in PROPERTIES.items():
        if row.flags:
            assert tuple(options[key].opts) == row.flags
            assert options[key].help


@pytest.mark.parametrize("kind", Kind)
def test_values_of_a_kind_have_its_type(kind: Kind) -> None:
    types: dict[Kind, tuple[type, ...]] = {
        Kind.TEXT: (str,),
        Kind.BYTES: (bytes,),
        Kind.NUMBER: (int,),
        Kind.SMALL: (int,),
        Kind.YES_NO: (bool,),
    }
    packet = PacketBuilder(r"OS:ALPHA\PRIVATE$\orders", "ALPHA").build(
        OutgoingMessage(body="x", label="l"), DEFAULT_FORMATTER, True
    )
    message = ReceivedMessage(Entry(77, 1_700_000_000, 2, 3, packet), DEFAULT_FORMATTER)
    for key, read in PLAIN.items():
        if PROPERTIES[key].kind is kind and kind in types:
            value = read(message)
            assert isinstance(value, types[kind]) or (value is None and PROPERTIES[key].null), key


def test_where_a_message_was_found_needs_no_packet_that_can_be_read() -> None:
    message = ReceivedMessage(Entry(77, 1_700_000_000, 2, 3, b"nonsense"), DEFAULT_FORMATTER)
    assert (message.lookup_id, message.abort_count, message.move_count) == (77, 2, 3)
    with pytest.raises(DecodeError):
        _ = message.label
