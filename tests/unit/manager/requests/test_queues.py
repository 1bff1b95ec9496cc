"""What the status tells of alarms, and to whom."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.security.access.callers import Caller
from openmsmq.security.access.sids import identities
from tests.unit.manager.access_cases import ALICE, BOB, only
from tests.unit.manager.office import LEDGER, ORDERS, Office

RAISED = [api.RaisedAlarm(name, 5, 1_000, f"about {name}") for name in (ORDERS, LEDGER, "")]
GONE = api.RaisedAlarm(r"private$\gone", 5, 1_000, "about a queue that was deleted")


def test_whoever_may_not_see_a_queue_hears_only_that_an_alarm_is_raised() -> None:
    office = Office()
    office.ok(api.SetSecurity(ORDERS, only(BOB, 0xF00FF)))
    alarm = api.AlarmStatus("deep", "messages", 3, 4, [*RAISED, GONE])
    office.driver.manager.admin.take_alarms([alarm])
    alice = office.driver.connect(Caller("alice", ALICE, identities(ALICE)))
    (shown,) = office.ok(api.GetStatus(), alice).alarms
    assert [raised.queue for raised in shown.raised] == [LEDGER, ""]
    assert (shown.name, shown.raised_count) == ("deep", 4)
    assert ORDERS not in str(shown)
    bob = office.driver.connect(Caller("bob", BOB, identities(BOB)))
    (shown,) = office.ok(api.GetStatus(), bob).alarms
    assert [raised.queue for raised in shown.raised] == [ORDERS, LEDGER, ""]
