"""Queues that a message names beside its destination: naming one is no way around its doors."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.access import QueueAccess
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.callers import Scope
from tests.strategies.messages import Draft
from tests.unit.manager.access.test_control import Company
from tests.unit.manager.access_cases import ALICE, only
from tests.unit.manager.office import LEDGER, ORDERS

DENIED = "MQ_ERROR_ACCESS_DENIED"
CLOSED = r"private$\closed"
FAR = r"DIRECT=TCP:192.0.2.9\private$\orders"
FARTHER = r"DIRECT=TCP:192.0.2.9\private$\ledger"


@pytest.fixture
def company() -> Company:
    company = Company()
    company.ok(api.CreateQueue(CLOSED), company.root)
    rights = only(ALICE, QueueAccess.WRITE_MESSAGE)
    company.ok(api.SetSecurity(CLOSED, rights), company.root)
    company.ok(api.CreateQueue(r"private$\closedledger", transactional=True), company.root)
    company.ok(api.SetSecurity(r"private$\closedledger", rights), company.root)
    return company


def sent(company: Company, app: int, queue: str = ORDERS, **wishes: object) -> api.Send:
    inside = queue == LEDGER
    packet = Draft(body=b"words", transactional=inside, **wishes).packet(rf"OS:ALPHA\{queue}")
    handle = company.open(queue, AccessMode.SEND, app=app)
    return api.Send(handle, [packet], api.OWN_TRANSACTION if inside else 0)


@pytest.mark.parametrize(
    ("queue", "closed"), [(ORDERS, CLOSED), (LEDGER, r"private$\closedledger")]
)
def test_who_may_not_send_to_a_queue_may_not_name_it_as_dead_letter_queue(
    company: Company, queue: str, closed: str
) -> None:
    wishes = {"journal_on_failure": True, "dead_letter_queue": closed}
    assert company.error(sent(company, company.bob, queue, **wishes), company.bob) == DENIED
    company.ok(sent(company, company.alice, queue, **wishes), company.alice)
    company.ok(api.Purge(company.open(queue, app=company.root)), company.root)
    assert company.bodies(closed) == [b"words"]


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (r"OS:ALPHA\private$\orders", True),
        (r"OS:.\PRIVATE$\Orders", True),
        (r"OS:ALPHA\private$\closed", False),
        (r"TCP:192.0.2.9\private$\orders", False),
        ("no name", False),
    ],
)
def test_a_message_that_may_become_a_dead_letter_names_the_queue_that_it_is_sent_to(
    company: Company, said: str, taken: bool
) -> None:
    """Whoever sends dead letters again sends them where they say that they belong."""
    handle = company.open(ORDERS, AccessMode.SEND, app=company.bob)
    request = api.Send(handle, [Draft(body=b"words", journal_on_failure=True).packet(said)])
    if taken:
        company.ok(request, company.bob)
    else:
        assert company.error(request, company.bob) == "MQ_ERROR_INVALID_PARAMETER"


def test_a_token_for_some_queues_names_no_others(company: Company) -> None:
    bound = company.token(Scope.SEND, queues=(ORDERS, r"private$\mine", FAR))
    company.ok(api.CreateQueue(r"private$\mine"), company.root)
    company.ok(api.CreateQueue(r"private$\yours"), company.root)
    dead = {"journal_on_failure": True}
    yours = sent(company, bound, dead_letter_queue=r"private$\yours", **dead)
    assert company.error(yours, bound) == DENIED
    company.ok(sent(company, bound, dead_letter_queue=r"private$\mine", **dead), bound)


@pytest.mark.parametrize(
    ("admin", "covered"),
    [
        (r"TCP:192.0.2.9\private$\orders", True),
        (r"TCP:192.0.2.9\private$\ledger", False),
        (r"OS:ALPHA\private$\orders", True),
        (r"OS:ALPHA\private$\ledger", False),
    ],
)
def test_a_token_for_some_queues_has_no_acknowledgments_sent_to_others(
    company: Company, admin: str, covered: bool
) -> None:
    bound = company.token(Scope.SEND, queues=(ORDERS, FAR))
    request = sent(company, bound, acknowledge=15, admin_queue=admin)
    if covered:
        company.ok(request, bound)
    else:
        assert "may not have acknowledgments sent to" in company.detail(request, bound)
    company.ok(sent(company, company.bob, acknowledge=15, admin_queue=admin), company.bob)


def test_a_token_for_some_queues_gets_to_no_others_by_a_list(company: Company) -> None:
    bound = company.token(Scope.SEND, queues=(r"DIRECT=TCP:192.0.2.9\private$\ord*",))
    both = f"{FAR},{FARTHER}"
    assert company.error(api.OpenQueue(both, AccessMode.SEND), bound) == DENIED
    twice = rf"{FAR},DIRECT=TCP:192.0.2.9\private$\orders2"
    company.ok(api.OpenQueue(twice, AccessMode.SEND), bound)


def test_a_queue_that_is_not_there_leaves_the_dead_letter_to_the_system(company: Company) -> None:
    request = sent(
        company, company.bob, journal_on_failure=True, dead_letter_queue=r"private$\nothing"
    )
    company.ok(request, company.bob)
