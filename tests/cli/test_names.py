r"""Names as .NET programs write them, at the command line and in both clients."""

from __future__ import annotations

import asyncio

import pytest

import openmsmq as mq
from openmsmq import aio
from tests.cli.conftest import CommandLine, ServerProcess


@pytest.mark.parametrize(
    "written",
    [
        r"FormatName:DIRECT=OS:ALPHA\{}",
        r"FormatName:DIRECT=OS:.\{}",
        r"DIRECT=OS:localhost\{}",
        r"localhost\{}",
        r".\{}",
        r"alpha\{}",
    ],
)
def test_a_queue_of_this_computer_is_found_by_every_spelling(
    openmsmq: CommandLine, queue: str, written: str
) -> None:
    name = written.format(queue.upper())
    sent = openmsmq("send", name, "--body", "tea", "--response-queue", name, "--json").object

    found = openmsmq("receive", name, "--json").object

    own = rf"DIRECT=OS:ALPHA\{queue}".upper()
    assert found["message_id"] == sent["message_id"]
    assert found["destination"].upper() == own
    assert found["response_queue"].upper() == own
    assert openmsmq("queue", "names", name, "--json").object["path_name"] == rf"ALPHA\{queue}"


def test_the_journal_of_a_queue_is_found_as_programs_name_it(openmsmq: CommandLine) -> None:
    openmsmq("queue", "create", r".\private$\kept", "--journal")
    openmsmq("send", r"private$\kept", "--body", "tea")
    openmsmq("receive", r"private$\kept")

    assert openmsmq("peek", r".\private$\kept\Journal$", "--json").object["text"] == "tea"
    assert openmsmq("receive", r".\Private$\Kept\JOURNAL$", "--json").object["text"] == "tea"


def test_dead_letters_are_found_as_programs_name_them(openmsmq: CommandLine, queue: str) -> None:
    openmsmq("queue", "purge", "system$;deadletter")
    openmsmq("send", queue, "--body", "late", "--deadletter")
    openmsmq("queue", "purge", queue)

    assert openmsmq("receive", r".\Deadletter$", "--json").object["text"] == "late"
    assert openmsmq("peek", r".\XactDeadletter$", code=3).out == ""
    assert openmsmq("queue", "show", r".\Journal$").out.startswith("system$;journal")


def test_a_queue_can_have_spaces_in_its_name(openmsmq: CommandLine) -> None:
    made = openmsmq("queue", "create", r".\private$\orders of today", "--json").object
    openmsmq("send", r"FormatName:DIRECT=OS:.\private$\Orders of Today", "--body", "tea")

    assert made["path_name"] == r"private$\orders of today"
    assert openmsmq("receive", r"private$\orders of today", "--json").object["text"] == "tea"
    assert "begin or end with a space" in openmsmq.refused("queue", "create", r"private$\orders ")


def test_a_queue_is_not_created_twice_under_two_spellings(
    openmsmq: CommandLine, queue: str
) -> None:
    assert "MQ_ERROR_QUEUE_EXISTS" in openmsmq.refused(
        "queue", "create", rf"FormatName:DIRECT=OS:localhost\{queue.upper()}"
    )


def test_a_label_is_no_name_and_the_sentence_says_how_to_find_one(openmsmq: CommandLine) -> None:
    assert "find-queues --label" in openmsmq.refused("peek", "Label:orders")


@pytest.mark.parametrize("command", [["peek"], ["queue", "create"], ["send", "--body=x"]])
def test_a_forgotten_dollar_is_pointed_out(openmsmq: CommandLine, command: list[str]) -> None:
    assert "private queues are named private$" in openmsmq.refused(*command, r"private\orders")
    assert "private$" not in openmsmq.refused("peek", r"beta\orders")


def test_both_clients_take_the_names_of_programs(server: ServerProcess, queue: str) -> None:
    name = rf"FormatName:DIRECT=OS:localhost\{queue}"

    async def receive() -> object:
        async with await aio.connect(server.address) as manager:
            return (await manager.queue(name).receive(timeout=5)).body

    with mq.connect(server.address) as manager:
        manager.queue(name).send("tea")
        assert manager.queue(name).format_name.upper() == rf"DIRECT=OS:ALPHA\{queue}".upper()
    assert asyncio.run(receive()) == "tea"
