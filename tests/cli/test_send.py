"""`openmsmq send` sends what its options say, and names what it sent."""

from __future__ import annotations

import base64
from datetime import datetime

import pytest

from openmsmq.model.identity import MessageId
from openmsmq.model.message import MessageClass


def received(openmsmq, queue):
    return openmsmq("receive", queue, "--json").object


def test_the_identifier_that_is_shown_is_the_one_that_is_received(openmsmq, queue):
    shown = openmsmq("send", queue, "--body", "order 1").out.strip()
    assert MessageId.parse(shown).number > 0
    assert received(openmsmq, queue)["message_id"] == shown


def test_text_is_sent_as_com_applications_send_it(openmsmq, queue):
    openmsmq("send", queue, "--body", "grüße", "--label", "ärger")
    message = received(openmsmq, queue)
    assert base64.b64decode(message["body"]) == "grüße".encode("utf-16-le")
    assert (message["body_type"], message["text"], message["label"]) == (8, "grüße", "ärger")


def test_text_can_be_sent_as_dotnet_applications_send_it(openmsmq, queue):
    openmsmq("send", queue, "--body", "a<b", "--formatter", "xml")
    body = base64.b64decode(received(openmsmq, queue)["body"]).decode("utf-8-sig")
    assert body.startswith("<?xml")
    assert "<string>a&lt;b</string>" in body


def test_text_can_be_sent_as_plain_bytes(openmsmq, queue):
    openmsmq("send", queue, "--body", "grüße", "--formatter", "bytes")
    message = received(openmsmq, queue)
    assert base64.b64decode(message["body"]) == "grüße".encode()
    assert (message["body_type"], message["text"]) == (0, "grüße")


def test_a_file_is_sent_byte_for_byte(openmsmq, queue, tmp_path):
    content = bytes(range(256)) * 100
    (tmp_path / "body").write_bytes(content)
    (tmp_path / "extension").write_bytes(b"\x00beside")
    openmsmq(
        "send",
        queue,
        f"--body-file={tmp_path / 'body'}",
        f"--extension-file={tmp_path / 'extension'}",
    )
    message = received(openmsmq, queue)
    assert base64.b64decode(message["body"]) == content
    assert base64.b64decode(message["extension"]) == b"\x00beside"
    assert message["text"] is None


def test_the_standard_input_can_be_the_body(openmsmq, queue):
    openmsmq("send", queue, "--body-file=-", stdin=b"piped")
    assert base64.b64decode(received(openmsmq, queue)["body"]) == b"piped"


def test_an_empty_body_is_a_body(openmsmq, queue):
    openmsmq("send", queue, "--body", "")
    assert received(openmsmq, queue)["text"] == ""


def test_all_properties_arrive(openmsmq, queue, ledger):
    correlation = r"{00112233-4455-6677-8899-aabbccddeeff}\7"
    openmsmq(
        *("send", queue, "--body", "x", "--recoverable", "--priority", "6", "--app-tag", "99"),
        *("--correlation-id", correlation, "--response-queue", ledger),
        *("--admin-queue", r"DIRECT=TCP:10.0.0.7\private$\acks", "--ack", "full-receive"),
        *("--time-to-reach-queue", "60", "--time-to-be-received", "3600"),
    )
    message = received(openmsmq, queue)
    assert message["recoverable"]
    assert not message["transactional"]
    assert message["priority"] == 6
    assert message["application_tag"] == 99
    assert message["correlation_id"] == correlation
    assert message["response_queue"].lower() == rf"direct=os:alpha\{ledger}"
    assert message["admin_queue"].lower() == r"direct=tcp:10.0.0.7\private$\acks"
    assert message["time_to_reach_queue_s"] == 60
    assert message["time_to_be_received_s"] == 3600
    assert message["message_class"] == MessageClass.NORMAL
    assert datetime.fromisoformat(message["sent_time"]) <= datetime.fromisoformat(
        message["arrived_time"]
    )


def test_acknowledgments_come_to_the_admin_queue(openmsmq, queue):
    acks = f"{queue}acks"
    openmsmq("queue", "create", acks)
    sent = openmsmq(
        *("send", queue, "--body", "x", "--ack", "full-reach-queue", "--admin-queue", acks),
        "--json",
    ).object
    ack = openmsmq("receive", acks, "--timeout", "5", "--json").object
    assert ack["message_class"] == MessageClass.ACK_REACH_QUEUE
    assert ack["correlation_id"] == sent["message_id"]


def test_a_message_can_name_its_own_dead_letter_queue(openmsmq, queue):
    failed = f"{queue}failed"
    openmsmq("queue", "create", failed)
    openmsmq("send", queue, "--body", "x", "--deadletter-queue", failed)
    shown = openmsmq("peek", queue, "--json").object
    assert shown["dead_letter_queue"].lower() == rf"alpha\{failed}"
    assert "dead-letter queue" in openmsmq("peek", queue).out
    openmsmq("queue", "purge", queue)
    assert received(openmsmq, failed)["text"] == "x"


def test_a_correlation_identifier_may_be_hexadecimal(openmsmq, queue):
    identifier = MessageId.parse(r"{00112233-4455-6677-8899-aabbccddeeff}\7")
    openmsmq("send", queue, "--body", "x", "--correlation-id", identifier.to_bytes().hex())
    assert received(openmsmq, queue)["correlation_id"] == str(identifier)


def test_many_copies_are_many_messages(openmsmq, queue):
    sent = openmsmq("send", queue, "--body", "x", "--count", "30", "--json").objects
    assert len({message["message_id"] for message in sent}) == 30
    assert openmsmq("queue", "show", queue, "--json").object["message_count"] == 30


def test_many_transactional_copies_are_one_transaction(openmsmq, ledger):
    openmsmq("send", ledger, "--body", "x", "--count", "3", "--transactional")
    messages = openmsmq("receive", ledger, "--count", "3", "--json").objects
    assert len({message["transaction_id"] for message in messages}) == 1
    assert [message["first_in_transaction"] for message in messages] == [True, False, False]
    assert [message["last_in_transaction"] for message in messages] == [False, False, True]


def test_one_transactional_message_is_a_transaction_of_its_own(openmsmq, ledger):
    openmsmq("send", ledger, "--body", "x", "--transactional")
    message = received(openmsmq, ledger)
    assert message["transactional"]
    assert message["recoverable"]
    assert message["first_in_transaction"]
    assert message["last_in_transaction"]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("--priority", "8"), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (("--priority", "-1"), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (("--app-tag", "4294967296"), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (("--time-to-be-received", "-5"), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (("--label", "x" * 250), "MQ_ERROR_LABEL_TOO_LONG"),
        (("--correlation-id", "seven"), "MQ_ERROR_INVALID_PARAMETER"),
        (("--response-queue", "DIRECT=nowhere"), "MQ_ERROR_ILLEGAL_FORMATNAME"),
        (("--transactional",), "MQ_ERROR_TRANSACTION_USAGE"),
    ],
)
def test_what_a_message_cannot_be_is_refused_by_name(openmsmq, queue, arguments, name):
    assert name in openmsmq.refused("send", queue, "--body", "x", *arguments)
    assert openmsmq("queue", "show", queue, "--json").object["message_count"] == 0


def test_a_transactional_queue_refuses_a_message_without_transaction(openmsmq, ledger):
    assert "MQ_ERROR_TRANSACTION_USAGE" in openmsmq.refused("send", ledger, "--body", "x")


def test_a_queue_that_is_not_there_is_named(openmsmq):
    sentence = openmsmq.refused("send", r"private$\nowhere", "--body", "x")
    assert r"private$\nowhere" in sentence
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in sentence


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "needs a body"),
        (("--body", "x", "--body-file", "y"), "--body and --body-file are two bodies"),
        (("--body-file", "nowhere.bin"), "nowhere.bin cannot be read"),
        (("--body", "x", "--ack", "maybe"), "--ack maybe is unknown"),
        (("--body", "x", "--ack", "full-receive"), "needs --admin-queue"),
        (("--body", "x", "--transactional", "--count", "100001"), "100000"),
    ],
)
def test_options_that_make_no_sense_are_explained(openmsmq, queue, arguments, problem):
    assert problem in openmsmq.refused("send", queue, *arguments, code=2)


def test_a_file_that_no_message_can_hold_is_refused(openmsmq, queue, tmp_path):
    file = tmp_path / "large"
    with file.open("wb") as opened:
        opened.truncate(5 << 20)
    assert "too large" in openmsmq.refused("send", queue, f"--body-file={file}", code=2)


def test_who_has_no_certificate_yet_hears_how_to_make_one(openmsmq, queue, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for command in (["send", queue, "--body", "x", "--sign"], ["certificate", "register"]):
        sentence = openmsmq.refused(*command, code=2)
        assert f"there is no certificate at {tmp_path}/openmsmq/certificate.pem" in sentence
        assert "openmsmq certificate create" in sentence
