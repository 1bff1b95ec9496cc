"""A verb starts again on a new connection only when nothing can have happened twice."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.client.errors import ConnectionLost, NotSent, OutcomeUnknown
from openmsmq.client.steps import (
    RESTARTS_MAX_COUNT,
    Ahead,
    Collect,
    Steps,
    VerbRun,
    ask,
    failure,
    patience_s,
)
from openmsmq.model.errors import QueueNotFound

LOST = ConnectionLost("gone")
SEND = api.Send(1, [b"packet"])


def sending() -> Steps[str]:
    yield api.OpenQueue("q", 2)
    yield SEND
    yield api.GetStatus()
    return "sent"


def test_a_plan_gives_its_result_after_its_last_answer() -> None:
    run = VerbRun(sending)
    assert run.start() == api.OpenQueue("q", 2)
    assert run.answered(api.Done()) == SEND
    assert run.answered(api.Done()) == api.GetStatus()
    assert run.answered(api.Done()) is None
    assert run.result == "sent"


def test_a_plan_starts_again_when_only_harmless_requests_were_lost() -> None:
    run = VerbRun(sending)
    run.start()
    run.lost(LOST)
    assert run.start() == api.OpenQueue("q", 2)


def test_a_lost_answer_to_a_send_is_an_unknown_outcome() -> None:
    run = VerbRun(sending)
    run.start()
    run.answered(api.Done())
    with pytest.raises(OutcomeUnknown, match="Send") as raised:
        run.lost(LOST)
    assert raised.value.call == "Send"


def test_a_send_that_never_left_is_made_again() -> None:
    run = VerbRun(sending)
    run.start()
    run.answered(api.Done())
    run.lost(NotSent("gone"))
    assert run.start() == api.OpenQueue("q", 2)


def test_what_has_taken_effect_is_not_done_again_for_a_later_loss() -> None:
    run = VerbRun(sending)
    run.start()
    run.answered(api.Done())
    run.answered(api.Done())
    with pytest.raises(OutcomeUnknown):
        run.lost(LOST)


def test_a_request_sent_ahead_counts_as_sent() -> None:
    def ahead() -> Steps[None]:
        call = yield Ahead(SEND)
        yield Collect(call)

    run = VerbRun(ahead)
    run.start()
    assert run.answered(5) == Collect(5)
    with pytest.raises(OutcomeUnknown):
        run.lost(LOST)


def test_a_plan_is_given_up_after_some_restarts() -> None:
    run = VerbRun(sending)
    for _ in range(RESTARTS_MAX_COUNT):
        run.start()
        run.lost(LOST)
    run.start()
    with pytest.raises(ConnectionLost) as raised:
        run.lost(LOST)
    assert raised.value is LOST


def test_a_plan_may_say_better_what_a_loss_means() -> None:
    def knowing() -> Steps[None]:
        try:
            yield api.GetStatus()
        except ConnectionLost:
            raise OutcomeUnknown("many things", "gone") from None

    run = VerbRun(knowing)
    run.start()
    with pytest.raises(OutcomeUnknown, match="many things"):
        run.lost(LOST)


def test_a_refusal_is_raised_with_its_code_and_detail() -> None:
    run = VerbRun(lambda: ask(api.GetQueue("q")))
    run.start()
    with pytest.raises(QueueNotFound, match="orders"):
        run.answered(api.Failed(QueueNotFound.code, "orders"))


def test_an_answer_of_another_kind_is_no_answer() -> None:
    assert isinstance(failure(api.Done()), ConnectionLost)


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        (api.Receive(1, timeout_ms=None), None),
        (api.Receive(1, timeout_ms=2_500), 12.5),
        (api.Find(1, timeout_ms=1_000), 11.0),
        (api.Purge(1), None),
        (api.GetStatus(), 10.0),
    ],
)
def test_patience_is_the_wait_of_the_call_and_some_time_to_answer(
    request_: api.AnyRequest, wanted: float | None
) -> None:
    assert patience_s(request_, 10.0) == wanted
