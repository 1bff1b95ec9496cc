"""Small traps that people met: each sentence says what is wrong, and nothing is lost by a habit."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

import openmsmq as mq
from openmsmq.cli.pipeline.replay import outcome_text
from openmsmq.cli.views.message import BODY_CHARACTERS, BODY_LINES_COUNT
from tests.cli.conftest import CommandLine, ServerProcess, command_line, environment


def at_a_terminal(server: ServerProcess, *arguments: str, answer: str = "") -> tuple[int, str]:
    """Run a command with a terminal as its input and output; gives its code and what it says."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        command_line("--qm", server.address, *arguments),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environment(), "TERM": "dumb"},
        start_new_session=True,
    ) as process:
        os.close(slave)
        os.write(master, answer.encode())
        said = b""
        try:
            while part := os.read(master, 4096):
                said += part
        except OSError:
            # The other end of a terminal is gone.
            pass
        code = process.wait(timeout=30)
    os.close(master)
    return code, said.decode()


# Nothing is deleted by a slip.


@pytest.mark.parametrize("command", ["purge", "delete"])
def test_a_person_at_a_terminal_is_asked_before_messages_are_gone(
    openmsmq: CommandLine, server: ServerProcess, queue: str, command: str
) -> None:
    openmsmq("send", queue, "--body", "dear")

    code, said = at_a_terminal(server, "queue", command, queue, answer="n\n")

    assert code == 1
    assert "1 message" in said
    assert "nothing was done" in said
    assert openmsmq("peek", queue, "--json").object["text"] == "dear"


@pytest.mark.parametrize("command", ["purge", "delete"])
@pytest.mark.parametrize(("options", "answer"), [((), "y\n"), (("--yes",), "")])
def test_a_person_who_says_yes_is_obeyed(
    openmsmq: CommandLine,
    server: ServerProcess,
    queue: str,
    command: str,
    options: tuple[str, ...],
    answer: str,
) -> None:
    openmsmq("send", queue, "--body", "old")

    code, said = at_a_terminal(server, "queue", command, queue, *options, answer=answer)

    assert code == 0
    assert ("?" in said) == bool(answer)
    assert openmsmq("peek", queue, code=3 if command == "purge" else 1).out == ""


@pytest.mark.parametrize("purging", [("journal", "--purge"), ("deadletter", "--purge")])
def test_a_person_is_asked_before_copies_are_gone(
    server: ServerProcess, purging: tuple[str, ...]
) -> None:
    code, said = at_a_terminal(server, *purging, answer="n\n")

    assert code == 1
    assert "nothing was done" in said


def test_a_script_is_never_asked(openmsmq: CommandLine, queue: str) -> None:
    openmsmq("send", queue, "--body", "old")

    assert openmsmq("queue", "purge", queue, "--json").object["purged"] == 1
    assert openmsmq("queue", "delete", queue).err == ""


# Long bodies.


def test_peek_shows_the_beginning_of_a_long_body_and_says_how_to_see_the_rest(
    openmsmq: CommandLine, queue: str
) -> None:
    text = "x" * (BODY_CHARACTERS + 100) + "END"
    openmsmq("send", queue, "--body", text)

    shown = openmsmq("peek", queue).out

    assert "x" * BODY_CHARACTERS in shown
    assert "END" not in shown
    assert "... and 103 characters more: --full shows all of it, --json too" in shown
    assert text in openmsmq("peek", queue, "--full").out
    assert openmsmq("peek", queue, "--json").object["text"] == text


def test_peek_shows_a_few_lines_of_a_body_of_many(openmsmq: CommandLine, queue: str) -> None:
    lines = [f"line {number}" for number in range(BODY_LINES_COUNT + 1)]
    openmsmq("send", queue, "--body", "\n".join(lines))

    shown = openmsmq("peek", queue).out

    assert lines[-2] in shown
    assert lines[-1] not in shown


def test_a_body_that_just_fits_is_shown_as_it_is(openmsmq: CommandLine, queue: str) -> None:
    openmsmq("send", queue, "--body", "x" * BODY_CHARACTERS)

    assert "more:" not in openmsmq("peek", queue).out


def test_what_is_taken_out_of_a_queue_is_shown_in_full(openmsmq: CommandLine, queue: str) -> None:
    text = "x" * (BODY_CHARACTERS + 100) + "END"
    openmsmq("send", queue, "--body", text)

    assert text in openmsmq("receive", queue).out


def test_tables_of_messages_have_the_identifier_that_other_commands_take(
    openmsmq: CommandLine,
) -> None:
    name = r"private$\with identifiers"
    openmsmq("queue", "create", name, "--journal")
    sent = openmsmq("send", name, "--body", "tea", "--json").object["message_id"]
    openmsmq("receive", name)

    assert sent in openmsmq("journal", name).out
    assert sent in openmsmq("journal", name, "--id", sent).out
    openmsmq("send", name, "--body", "late", "--deadletter")
    openmsmq("queue", "purge", name)
    letter = openmsmq("deadletter", "--json").objects[-1]["message_id"]
    assert letter in openmsmq("deadletter").out


# Sentences.


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (("queue", "create", "q", "--privacy", "bdy"), ("none", "optional", "body")),
        (("send", "q", "--body", "x", "--formatter", "json"), ("active_x", "xml", "bytes")),
        (("send", "q", "--body", "x", "--ack", "full"), ("full-receive", "full-reach-queue")),
        (("send", "q", "--body", "x", "--sign", "--hash", "sha3"), ("sha512", "md5")),
        (("peek", "q", "--seek", "nxt"), ("next", "previous", "first", "last")),
        (("queue", "acl", "grant", "q", "everyone", "sent"), ("send", "receive", "full")),
        (("directory", "list", "managers"), ("manager", "queue", "list")),
        (("token", "create", "t", "--scope", "snd", "--data", "d"), ("send", "receive", "admin")),
        (("serve", "--data", "d", "--log-level", "loud"), ("debug", "info", "warning", "error")),
        (("serve", "--data", "d", "--log-format", "xml"), ("text", "json")),
    ],
)
def test_a_word_that_is_not_among_the_possible_ones_is_answered_with_these(
    offline: CommandLine, arguments: tuple[str, ...], values: tuple[str, ...]
) -> None:
    sentence = offline.refused(*arguments, code=2)

    assert [value for value in values if value not in sentence] == []
    assert "Value error" not in sentence
    assert "enum" not in sentence


def test_every_way_to_name_somebody_is_said_and_works(openmsmq: CommandLine, queue: str) -> None:
    sentence = openmsmq.refused("queue", "acl", "grant", queue, "alice", "send", code=2)

    assert "user:NAME, group:NAME, user:NUMBER, group:NUMBER, account:NAME, or a SID" in sentence
    for who in ("user:root", "USER:root", "user:0", "S-1-22-1-0", "everyone", "Everyone"):
        openmsmq("queue", "acl", "grant", queue, who, "send")
    sentence = openmsmq.refused("queue", "acl", "grant", queue, "user:nobody here", "send", code=2)
    assert "this computer has no user 'nobody here'" in sentence
    assert "user:1000" in sentence


def test_a_program_names_users_as_the_command_line_does(server: ServerProcess, queue: str) -> None:
    with mq.connect(server.address) as manager:
        found = manager.queue(queue)
        by_name = found.grant("user:root", "send").descriptor.entries
        by_number = found.grant("user:0", "send").descriptor.entries
        with pytest.raises(ValueError, match="user:NAME"):
            found.grant("root", "send")
    assert by_name == by_number


def test_a_token_without_an_end_is_not_called_revoked(offline: CommandLine, tmp_path: Path) -> None:
    offline("token", "create", "lasting", "--scope", "send", "--data", str(tmp_path))
    offline(
        "token", "create", "short", "--scope", "send", "--data", str(tmp_path), "--expires", "1"
    )
    heads, lasting, short = offline("token", "list", "--data", str(tmp_path)).out.splitlines()

    assert heads.endswith("  Good")
    assert lasting.endswith("  until it is revoked")
    assert "  until 2" in short


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((2, 0, 0), "2 messages sent again"),
        ((0, 2, 0), "nothing sent again, 2 had been sent before"),
        ((1, 2, 3), "1 message sent again, 2 had been sent before, 3 not sent"),
    ],
)
def test_a_replay_says_only_what_it_has_sent(counts: tuple[int, int, int], text: str) -> None:
    assert outcome_text(*counts) == text
