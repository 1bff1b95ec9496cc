"""`openmsmq queue export` and `queue import` carry a queue through a file, whole."""

from __future__ import annotations

import contextlib
import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

import openmsmq as mq
from openmsmq.cli.messages import exporting
from openmsmq.client.messages.queue_file import (
    MAGIC,
    FileCut,
    Origin,
    QueueFileError,
    QueueFileWriter,
    read_origin,
    read_packets,
)

ORIGIN = Origin(r"private$\orders", "ALPHA", "00112233-4455-6677-8899-aabbccddeeff", False)
packet_lists = st.lists(st.binary(min_size=1, max_size=200), max_size=8)


def written(packets, *, finish=True):
    file = io.BytesIO()
    writer = QueueFileWriter(file, ORIGIN)
    for packet in packets:
        writer.write(packet)
    if finish:
        writer.finish()
    return file.getvalue()


def read(data):
    file = io.BytesIO(data)
    return read_origin(file), list(read_packets(file))


@given(packet_lists)
def test_what_was_written_is_read(packets):
    assert read(written(packets)) == (ORIGIN, packets)


@given(packet_lists, st.data())
def test_a_file_that_is_cut_anywhere_is_never_taken_for_whole(packets, data):
    whole = written(packets)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(QueueFileError):
        read(whole[:cut])


@given(packet_lists, st.data())
def test_a_changed_bit_behind_the_start_is_noticed(packets, data):
    damaged = bytearray(written(packets))
    start = damaged.index(b"}\n") + 2
    place = data.draw(st.integers(start, len(damaged) - 1))
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(QueueFileError):
        read(bytes(damaged))


@given(st.binary())
def test_other_files_are_told_apart(data):
    if not data.startswith(MAGIC):
        with pytest.raises(QueueFileError, match="no exported queue"):
            read(data)


def test_what_is_there_of_a_cut_file_can_be_read():
    file = io.BytesIO(written([b"one", b"two"], finish=False))
    read_origin(file)
    packets = read_packets(file)
    assert [next(packets), next(packets)] == [b"one", b"two"]
    with pytest.raises(FileCut, match="after 2 messages"):
        next(packets)


def fill(openmsmq, queue, *options):
    for priority, body in (("1", "low"), ("7", "high"), ("1", "low too")):
        openmsmq(
            *("send", queue, "--body", body, "--label", body.upper(), "--app-tag", "5"),
            *("--priority", priority, *options),
        )


def content(openmsmq, queue):
    messages = openmsmq("receive", queue, "--all", "--json").objects
    return [
        (each["text"], each["label"], each["application_tag"], each["recoverable"])
        for each in messages
    ]


def count(openmsmq, queue):
    return openmsmq("queue", "show", queue, "--json").object["message_count"]


def test_a_queue_comes_back_from_its_file(openmsmq, queue, tmp_path):
    file = str(tmp_path / "orders.queue")
    fill(openmsmq, queue, "--recoverable")
    done = openmsmq("queue", "export", queue, file, "--json").object
    assert (done["exported"], done["left"]) == (3, 0)
    assert count(openmsmq, queue) == 0
    assert openmsmq("queue", "import", queue, file, "--json").object["imported"] == 3
    assert content(openmsmq, queue) == [
        ("high", "HIGH", 5, True),
        ("low", "LOW", 5, True),
        ("low too", "LOW TOO", 5, True),
    ]


def test_a_copy_leaves_the_queue_as_it_is(openmsmq, queue, tmp_path):
    file = str(tmp_path / "copy")
    fill(openmsmq, queue)
    assert "exported 3 messages" in openmsmq("queue", "export", queue, file, "--keep").out
    assert [text for text, *_ in content(openmsmq, queue)] == ["high", "low", "low too"]


def test_a_transactional_queue_comes_back_in_order(openmsmq, ledger, tmp_path):
    file = str(tmp_path / "ledger")
    fill(openmsmq, ledger, "--transactional")
    openmsmq("queue", "export", ledger, file)
    assert count(openmsmq, ledger) == 0
    openmsmq("queue", "import", ledger, file)
    messages = openmsmq("receive", ledger, "--all", "--json").objects
    assert [each["text"] for each in messages] == ["low", "high", "low too"]
    assert len({each["transaction_id"] for each in messages}) == 1


@pytest.mark.parametrize("back", [False, True])
def test_messages_change_between_queues_with_and_without_transactions(
    openmsmq, queue, ledger, tmp_path, back
):
    source, target = (ledger, queue) if back else (queue, ledger)
    fill(openmsmq, source, *(["--transactional"] if back else ["--recoverable"]))
    openmsmq("queue", "export", source, str(tmp_path / "f"))
    openmsmq("queue", "import", target, str(tmp_path / "f"))
    messages = openmsmq("receive", target, "--all", "--json").objects
    assert {each["transactional"] for each in messages} == {not back}
    assert {each["destination"].lower() for each in messages} == {rf"direct=os:alpha\{target}"}
    assert len(messages) == 3


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind", ["queue", "ledger"])
def test_many_messages_take_many_batches(openmsmq, request, kind, keep, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "EXPORT_BATCH_COUNT", 7)
    monkeypatch.setattr(exporting, "IMPORT_BATCH_COUNT", 5)
    monkeypatch.setattr(exporting, "TRANSACTION_COUNT", 15)
    queue = request.getfixturevalue(kind)
    option = ["--transactional"] if kind == "ledger" else []
    openmsmq("send", queue, "--body", "x", "--count", "40", *option)
    openmsmq("queue", "export", queue, str(tmp_path / "f"), *(["--keep"] if keep else []))
    assert count(openmsmq, queue) == (40 if keep else 0)
    openmsmq("queue", "import", queue, str(tmp_path / "f"))
    assert count(openmsmq, queue) == (80 if keep else 40)


def test_messages_that_others_take_meanwhile_are_counted(
    openmsmq, queue, server, tmp_path, monkeypatch
):
    def sync_while_another_reads(descriptor: int) -> None:
        os.fdatasync(descriptor)
        with contextlib.suppress(mq.ReceiveTimeout), mq.connect(server.address) as manager:
            manager.queue(queue).receive(timeout=0)

    monkeypatch.setattr(exporting.os, "fsync", sync_while_another_reads)
    fill(openmsmq, queue)
    done = openmsmq("queue", "export", queue, str(tmp_path / "f"), "--json").object
    assert (done["exported"], done["left"]) == (3, 1)


def test_an_import_that_stops_says_where_to_go_on(openmsmq, queue, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "IMPORT_BATCH_COUNT", 2)
    openmsmq("send", queue, "--body", "x" * 150, "--count", "5")
    openmsmq("queue", "export", queue, str(tmp_path / "f"))
    openmsmq("queue", "change", queue, "--quota-kb", "2")
    sentence = openmsmq.refused("queue", "import", queue, str(tmp_path / "f"))
    assert "MQ_ERROR_INSUFFICIENT_RESOURCES" in sentence
    assert "4 of 5 messages were sent before; --skip 4" in sentence
    openmsmq("queue", "change", queue, "--quota-kb", "unlimited")
    openmsmq("queue", "import", queue, str(tmp_path / "f"), "--skip", "4")
    assert count(openmsmq, queue) == 5


def test_an_existing_file_is_never_overwritten(openmsmq, queue, tmp_path):
    file = tmp_path / "precious"
    file.write_bytes(b"precious")
    fill(openmsmq, queue)
    assert "exists already" in openmsmq.refused("queue", "export", queue, str(file), code=2)
    assert file.read_bytes() == b"precious"
    assert count(openmsmq, queue) == 3


def test_a_file_that_cannot_be_written_loses_nothing(openmsmq, queue):
    fill(openmsmq, queue)
    for file in ("/dev/full/x", "no/such/directory"):
        assert "cannot be written" in openmsmq.refused("queue", "export", queue, file)
    assert count(openmsmq, queue) == 3


def test_a_cut_file_is_refused_unless_that_is_wanted(openmsmq, queue, tmp_path):
    file = tmp_path / "f"
    fill(openmsmq, queue)
    openmsmq("queue", "export", queue, str(file))
    file.write_bytes(file.read_bytes()[:-30])
    sentence = openmsmq.refused("queue", "import", queue, str(file), code=2)
    assert "cut after 2 messages" in sentence
    assert count(openmsmq, queue) == 0
    assert openmsmq("queue", "import", queue, str(file), "--cut", "--json").object["imported"] == 2


def test_a_damaged_file_is_refused_before_anything_is_sent(openmsmq, queue, tmp_path):
    file = tmp_path / "f"
    fill(openmsmq, queue)
    openmsmq("queue", "export", queue, str(file))
    damaged = bytearray(file.read_bytes())
    damaged[-40] ^= 1
    file.write_bytes(damaged)
    sentence = openmsmq.refused("queue", "import", queue, str(file), "--cut", code=2)
    assert "message 3 is damaged" in sentence
    assert count(openmsmq, queue) == 0


@pytest.mark.parametrize("content", [b"", b"something else"])
def test_a_file_of_something_else_is_refused(openmsmq, queue, tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    sentence = openmsmq.refused("queue", "import", queue, str(tmp_path / "f"), code=2)
    assert "no exported queue" in sentence


def test_packets_that_are_no_messages_are_refused_by_name(openmsmq, queue, tmp_path):
    (tmp_path / "f").write_bytes(written([b"not a packet"]))
    sentence = openmsmq.refused("queue", "import", queue, str(tmp_path / "f"))
    assert "MQ_ERROR_INVALID_PARAMETER" in sentence


def test_more_cannot_be_skipped_than_there_is(openmsmq, queue, tmp_path):
    (tmp_path / "f").write_bytes(written([]))
    sentence = openmsmq.refused("queue", "import", queue, str(tmp_path / "f"), "--skip=1", code=2)
    assert "0 messages" in sentence
