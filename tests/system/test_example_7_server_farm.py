"""A server farm, step by step. [MQOD 3.7]

Agents send signed messages to an intermediary server, whose queue takes no others. Analysis servers
are clients of the intermediary server: they share its queue, and answer through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.client.blocking import QueueManager
from openmsmq.client.messages.certificates import Certificate
from tests.runtime.computers import Computer, neighbours, running, wait_for
from tests.runtime.scripted_engine import free_port

QUESTIONS = r"private$\questions"
ANSWERS = r"private$\answers"


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[list[Computer]]:
    """The intermediary server, which has the directory, and the computers of two agents."""
    pings = free_port("127.0.0.2", "127.0.0.3", "127.0.0.4")
    found = neighbours(tmp_path, "MIDDLE", "AGENT1", "AGENT2", ping_port=pings)
    middle, *agents = found
    middle.options = ("--directory-server",)
    for agent in agents:
        agent.options = ("--directory", middle.qm, "--directory-poll-s", "1")
    with running(middle), running(*agents):
        middle.command("queue", "create", QUESTIONS, "--transactional", "--authenticate")
        for agent in agents:
            agent.command("queue", "create", ANSWERS, "--transactional")
        yield found


def ask(agent: Computer, middle: Computer, question: str, certificate: Certificate | None) -> None:
    """The sales program: 1 and 2, it makes a message and sends it in a transaction."""
    with agent.connect() as manager, manager.transaction() as transaction:
        manager.queue(middle.queue(QUESTIONS)).send(
            question,
            transaction=transaction,
            response_queue=agent.queue(ANSWERS),
            certificate=certificate,
            journal_on_failure=True,
        )


def analyse(manager: QueueManager) -> str:
    """The analysis program: 4 to 6, it receives, analyses and answers in one transaction."""
    with manager.transaction() as transaction:
        question = manager.queue(QUESTIONS).receive(30, transaction=transaction)
        assert question.authenticated
        manager.queue(str(question.response_queue)).send(
            f"{question.body} is {len(str(question.body))}",
            transaction=transaction,
            correlation_id=question.id,
        )
    return str(question.body)


def outgoing(computer: Computer, name: str) -> dict[str, object]:
    (found,) = computer.objects("outgoing", "show", name)
    return found


@pytest.mark.spec("MQOD-3.7-01")
def test_analysis_servers_share_what_agents_ask(farm: list[Computer], tmp_path: Path) -> None:
    middle, *agents = farm
    file = str(tmp_path / "certificate.pem")
    middle.command("certificate", "create", "--certificate", file, "--bits", "2048")
    middle.command("certificate", "register", "--certificate", file)
    certificate = Certificate.load(file)
    for agent in agents:
        wait_for(lambda agent=agent: agent.objects("certificate", "list")[0]["certificates"])

    # 1-2: each agent's message waits in an outgoing queue.
    for agent, question in zip(agents, ("one", "three"), strict=True):
        agent.command("offline")
        ask(agent, middle, question, certificate)
        assert outgoing(agent, middle.queue(QUESTIONS))["message_count"] == 1
        # 3: it is authenticated and sent to the intermediary server.
        agent.command("online")
    with middle.connect() as first, middle.connect() as second:
        wait_for(lambda: first.queue(QUESTIONS).count() == 2)

        # What nobody has signed comes back.
        ask(agents[0], middle, "unsigned", None)
        wait_for(lambda: agents[0].objects("deadletter", "--transactional"))
        (returned,) = agents[0].objects("deadletter", "--transactional", "--receive")
        assert (returned["text"], returned["reason"]) == ("unsigned", "NACK_BAD_SIGNATURE")
        assert first.queue(QUESTIONS).count() == 2

        # 4-7: two analysis programs have one question each, and answer into outgoing queues.
        assert {analyse(first), analyse(second)} == {"one", "three"}
        assert first.queue(QUESTIONS).count() == 0

        # 8-10: the answer comes to the agent who asked, and the sales program receives it.
        for agent, answer in zip(agents, ("one is 3", "three is 5"), strict=True):
            with agent.connect() as manager, manager.transaction() as transaction:
                found = manager.queue(ANSWERS).receive(30, transaction=transaction)
                assert found.body == answer
            assert agent.objects("queue", "show", ANSWERS)[0]["message_count"] == 0

    # The final states are the initial ones.
    for agent in agents:
        wait_for(lambda agent=agent: outgoing(agent, middle.queue(QUESTIONS))["unread_count"] == 0)
        wait_for(lambda agent=agent: outgoing(middle, agent.queue(ANSWERS))["message_count"] == 0)
