"""What a turn does to memory is taken back as a whole when the disk refuses it.

The memory of a real queue manager is compared fact by fact: before a turn, and after the disk has
refused it. What may differ is listed, each with its reason.
"""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.model.clock import Instant
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.access import MANAGER_DEFAULT
from tests.property.driver import Driver
from tests.property.snapshots import differences, snapshot
from tests.strategies.messages import Draft

QUEUES = (r"private$\plain", r"private$\ledger", r"private$\later")
SECOND = r"private$\second"
QUERY = "hourly"
AWAY = r"DIRECT=OS:beta\private$\orders"
MANY = "MULTICAST=234.1.1.1:8001"

MAY_DIFFER = {
    r"\.(_arrival|_message|_transaction)$": "numbers are never given twice",
    r"\.next_handle$": "nor are handles",
    r"\._ticket$": "nor are tickets",
    r"\.passage\.": "it counts what came and went, taken back or not",
    r"\.store_problem$|\._store_problem_since_s$": "an operator sees that the disk is full",
    r"\.(_refused_until_ms|_paused_until_ms)$": "and it is left alone for a moment",
    r"\._last_checked\[": "a packet that was looked at need not be looked at again",
    r"\.ready(\[|$)": "an outgoing queue is looked at once more",
    r"\._by_key(\['beta'\]\.|$)|\.neighbour$": "a link rests until its queue is looked at again",
    r"\.links\._resolving(\[|$)": "and its address may be found meanwhile",
    r"\.floor$": "nothing is before the first entry, wherever one begins to look",
    r"\.flow\.oldest_s$": "what was looked up is forgotten when an entry comes or goes",
}
"""What a turn that was taken back leaves behind, and why it may."""


class Application:
    """One application, whose calls are made in one turn or in several."""

    def __init__(self) -> None:
        self.driver = Driver(ManagerConfig(name="ALPHA", aside_min_bytes=1), Instant(0, 1_000_000))
        self.app = self.driver.connect()
        self.handles: dict[tuple[str, AccessMode], int] = {}
        for name in QUEUES[:2]:
            self.ask(api.CreateQueue(name, transactional=name == QUEUES[1]))
        self.ask(api.CreateQueue(SECOND, transactional=True))
        self.driver.manager.multicast_problem("", self.driver.now)
        for name in (*QUEUES[:2], AWAY, SECOND, MANY):
            self.open(name, AccessMode.SEND)
        for name in QUEUES[:2]:
            self.open(name, AccessMode.RECEIVE)
        self.transactions = [self.begin() for _ in range(3)]
        """One is active, one prepared, and one is a prepared part of a batch."""
        self.ask(api.Prepare(self.transactions[1].transaction))
        self.ask(api.Prepare(self.transactions[2].transaction, QUERY, 0))
        # What is read from the store when it is first needed, and kept, is there now.
        for action in ("pause", "resume"):
            self.ask(api.ControlOutgoing(AWAY, action))
        self.driver.wake()
        self.driver.pump()

    def ask(self, request: api.AnyRequest) -> Any:
        return self.driver.call(self.app, request)

    def open(self, name: str, access: AccessMode) -> None:
        self.handles[name, access] = self.ask(api.OpenQueue(name, access)).handle

    def begin(self) -> api.Begun:
        """Begin a transaction that sends to two queues."""
        begun = self.ask(api.Begin())
        assert isinstance(begun, api.Begun)
        for name in (QUEUES[1], SECOND):
            packets = [Draft(transactional=True).packet(f"OS:ALPHA\\{name}")] * 2
            handle = self.handles[name, AccessMode.SEND]
            self.ask(api.Send(handle, packets, begun.transaction))
        return begun

    def request(self, wish: Wish) -> None:
        if wish.kind in TRANSACTIONS:
            request = wish.ending(self.transactions)
        else:
            request = wish.request(self.handles)
        self.driver.request(self.app, request)


class Wish:
    """A request that needs handles."""

    def __init__(self, kind: str, queue: str, count: int, *, recoverable: bool) -> None:
        self.kind = kind
        self.queue = queue
        self.count = count
        self.recoverable = recoverable

    def __repr__(self) -> str:
        kept = "recoverable" if self.recoverable else "express"
        return f"{self.kind} {self.queue} {self.count} {kept}"

    def ending(self, transactions: list[api.Begun]) -> api.AnyRequest:
        """Return what brings a transaction on; which one, the count says.

        An active one that is aborted is gone though the disk refuses, and not asked for here.
        """
        numbers = [begun.transaction for begun in transactions]
        if self.kind == "prepare":
            return api.Prepare(numbers[0])
        if self.kind == "commit":
            return api.Commit(numbers[self.count - 1])
        if self.kind == "abort":
            return api.Abort(numbers[max(self.count - 1, 1)])
        if self.kind == "commit batch":
            return api.CommitBatch(QUERY, 0, [transactions[2].unit_of_work])
        assert self.kind == "abort batch"
        return api.AbortBatch(QUERY, self.count)

    def request(self, handles: dict[tuple[str, AccessMode], int]) -> api.AnyRequest:
        inside = self.queue == QUEUES[1] or (self.queue == AWAY and self.recoverable)
        here = QUEUES[0] if self.queue == AWAY else self.queue
        if self.kind in ("send", "send once", "multicast"):
            name = MANY if self.kind == "multicast" else self.queue
            return self.sending(handles[name, AccessMode.SEND], inside)
        if self.kind == "receive":
            return api.Receive(handles[here, AccessMode.RECEIVE], self.count, 0)
        if self.kind == "purge":
            return api.Purge(handles[here, AccessMode.RECEIVE])
        if self.kind == "create":
            return api.CreateQueue(QUEUES[2])
        if self.kind == "delete":
            return api.DeleteQueue(QUEUES[2])
        if self.kind == "change":
            return api.ChangeQueue(here, quota_kb=self.count * 1000)
        if self.kind == "pause":
            return api.ControlOutgoing(AWAY, "resume" if self.count == 1 else "pause")
        if self.kind == "reserve":
            return api.Reserve(handles[here, AccessMode.RECEIVE], "reader", 0, self.count)
        if self.kind == "security":
            return api.SetSecurity("", MANAGER_DEFAULT if self.recoverable else b"")
        assert self.kind == "subqueue"
        return api.OpenQueue(f"{here};part{self.count}", AccessMode.RECEIVE)

    def sending(self, handle: int, inside: bool) -> api.AnyRequest:
        if self.kind == "multicast":
            return api.SendOnce(handle, Draft().packet(), f"key {self.count}", b"to many")
        draft = Draft(recoverable=self.recoverable or inside, transactional=inside)
        where = r"OS:beta\private$\orders" if self.queue == AWAY else f"OS:ALPHA\\{self.queue}"
        packets = [draft.packet(where) for _ in range(self.count)]
        own = api.OWN_TRANSACTION if inside else 0
        if self.kind == "send once":
            return api.SendOnce(handle, packets[0], f"key {self.count}", b"digest", own)
        return api.Send(handle, packets, own)


TRANSACTIONS = ("prepare", "commit", "abort", "commit batch", "abort batch")
KINDS = (
    *TRANSACTIONS,
    *("send", "send once", "multicast", "receive", "purge", "reserve"),
    *("create", "delete", "change", "subqueue", "pause", "security"),
)
wishes = st.builds(
    Wish,
    st.sampled_from(KINDS),
    st.sampled_from((*QUEUES[:2], AWAY)),
    st.integers(1, 3),
    recoverable=st.booleans(),
)


@given(st.lists(wishes, max_size=8), st.lists(wishes, min_size=1, max_size=4))
def test_a_turn_that_the_disk_refuses_leaves_no_trace_in_memory(
    earlier: list[Wish], refused: list[Wish]
) -> None:
    office = Application()
    for wish in earlier:
        office.request(wish)
        office.driver.pump()
    before = snapshot(office.driver.manager)
    for wish in refused:
        office.request(wish)
    if not office.driver.pump(fail=1):
        return
    after = snapshot(office.driver.manager)
    found = {
        path: values
        for path, values in differences(before, after).items()
        if not any(re.search(left, path) for left in MAY_DIFFER)
    }
    # The number of a queue that never came to be is not given to another one.
    assert [path for path, texts in found.items() if not is_next_queue(path, *texts)] == [], found


def is_next_queue(path: str, was: str, now: str) -> bool:
    """Whether the machine record differs in nothing but the number of the next queue."""
    number = "next_queue=[0-9]+"
    return path.endswith(".machine") and re.sub(number, "", was) == re.sub(number, "", now)
