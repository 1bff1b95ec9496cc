"""Why a message has not left."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from openmsmq.protocol.explain import MessageStage, StuckFacts, duration, explain
from openmsmq.protocol.link import LinkState

QUEUED = StuckFacts(
    neighbour="beta",
    message_count=3,
    address="10.0.0.7",
    window=64,
    in_flight_count=10,
    link_since_s=4,
    silent_for_s=17,
    sent_s=300,
    resend_in_s=21_600,
    retry_in_s=5,
)
PROBLEM = "the address of beta could not be found"


def facts(**changes: object) -> StuckFacts:
    return msgspec.structs.replace(QUEUED, **changes)


@pytest.mark.parametrize(
    ("stuck", "sentence"),
    [
        (facts(message_count=0), "The queue is empty."),
        (facts(paused=True), "The queue is paused: resume it to send."),
        (facts(offline=True), "This queue manager is offline: bring it online to send."),
        (
            facts(hardened=True),
            "The queue is locked: this queue manager is hardened and sends nothing by the binary "
            "protocol.",
        ),
        (facts(link=LinkState.IDLE), "A connection to beta is about to be opened."),
        (
            facts(link=LinkState.RESOLVING),
            "The address of beta is being looked up, for 4 s now.",
        ),
        (
            facts(link=LinkState.PINGING),
            "beta (10.0.0.7) was asked whether it takes a session, for 4 s now.",
        ),
        (
            facts(link=LinkState.CONNECTING, last_problem=PROBLEM),
            "A connection to beta (10.0.0.7) is being opened, for 4 s now; before, the address of "
            "beta could not be found.",
        ),
        (
            facts(link=LinkState.OPENING),
            "beta (10.0.0.7) is connected, but has not finished opening the session, for 4 s now.",
        ),
        (
            facts(link=LinkState.WAITING, last_problem=PROBLEM),
            "There is no connection to beta: the address of beta could not be found; next try in "
            "5 s.",
        ),
        (
            facts(link=LinkState.WAITING),
            "There is no connection to beta: the last session has ended; next try in 5 s.",
        ),
        (
            facts(link=LinkState.OPEN),
            "The first message is being sent to beta (10.0.0.7) right now.",
        ),
        (
            facts(link=LinkState.OPEN, neighbour="10.0.0.7"),
            "The first message is being sent to 10.0.0.7 right now.",
        ),
        (
            facts(link=LinkState.OPEN, in_flight_count=64),
            "The window of 64 messages to beta (10.0.0.7) is full: nothing was acknowledged for "
            "17 s.",
        ),
        (
            facts(link=LinkState.OPEN, stage=MessageStage.IN_FLIGHT),
            "The first message was sent to beta (10.0.0.7) 5 min ago and is not acknowledged yet.",
        ),
        (
            facts(link=LinkState.OPEN, stage=MessageStage.AWAITING_ORDER_ACK),
            "The first message was sent 5 min ago and the destination has not acknowledged its "
            "order yet; it is sent again in 6 h.",
        ),
        (
            facts(stage=MessageStage.AWAITING_FINAL_ACK),
            "The first message was sent 5 min ago and has reached its queue; whether it is "
            "received there is not known yet.",
        ),
    ],
)
def test_each_reason_has_its_sentence(stuck: StuckFacts, sentence: str) -> None:
    assert explain(stuck) == sentence


def test_any_facts_give_one_sentence() -> None:
    flags = (False, True)
    for message_count, paused, offline, hardened, stage, link, problem, window in itertools.product(
        (0, 1), flags, flags, flags, MessageStage, LinkState, ("", PROBLEM), (0, 64)
    ):
        sentence = explain(
            facts(
                message_count=message_count,
                paused=paused,
                offline=offline,
                hardened=hardened,
                stage=stage,
                link=link,
                last_problem=problem,
                window=window,
            )
        )
        assert sentence.endswith(".")
        assert ". " not in sentence
        assert "\n" not in sentence


@pytest.mark.parametrize("link", LinkState)
def test_what_holds_the_queue_back_comes_before_the_link(link: LinkState) -> None:
    assert "paused" in explain(facts(paused=True, link=link))
    assert "offline" in explain(facts(offline=True, paused=True, link=link))
    assert "locked" in explain(facts(hardened=True, offline=True, paused=True, link=link))


def test_a_message_that_has_arrived_does_not_mind_a_pause() -> None:
    sentence = explain(facts(paused=True, stage=MessageStage.AWAITING_FINAL_ACK))
    assert "has reached its queue" in sentence


def test_a_message_whose_session_has_ended_waits_for_the_next_one() -> None:
    in_flight = facts(link=LinkState.WAITING, stage=MessageStage.IN_FLIGHT)
    assert explain(in_flight) == explain(facts(link=LinkState.WAITING))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "119 min"), (7_200, "2 h")],
)
def test_durations_are_short_and_have_a_unit(seconds: int, text: str) -> None:
    assert duration(seconds) == text
