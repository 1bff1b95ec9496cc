"""Readers that wait are given messages in the order in which these came, however slow a disk is."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.outputs import Persist
from openmsmq.model.clock import Instant
from openmsmq.model.queue import AccessMode
from openmsmq.wire.packets import UserMessage, decode
from tests.property.driver import Driver
from tests.strategies.messages import Draft

QUEUE = r"private$\plain"
MINUTE_MS = 60_000


class Sent(NamedTuple):
    """A message that is sent; one that is not plain takes another way into its queue."""

    priority: int = 3
    recoverable: bool = True
    plain: bool = True


class Wait(NamedTuple):
    """Somebody asks for so many messages, and waits for them."""

    count: int = 1


class Disk(NamedTuple):
    """The disk has everything that it was given so far."""


Step = Sent | Wait | Disk
steps = st.lists(
    st.one_of(
        st.builds(Sent, st.sampled_from((3, 0)), st.booleans(), st.booleans()),
        st.builds(Wait, st.integers(1, 3)),
        st.just(Disk()),
    ),
    max_size=20,
)


class Counter:
    """One queue, who sends to it and who waits there; the disk takes its time."""

    def __init__(self) -> None:
        self.driver = Driver(ManagerConfig(name="ALPHA"), Instant(0, 1_000_000))
        self.app = self.driver.connect()
        self.driver.call(self.app, api.CreateQueue(QUEUE))
        self.into, self.out_of = (
            self.driver.call(self.app, api.OpenQueue(QUEUE, access)).handle  # type: ignore[union-attr]
            for access in (AccessMode.SEND, AccessMode.RECEIVE)
        )
        self.under_way: list[Persist] = []
        self.sent: list[Sent] = []

    def step(self, step: Step) -> None:
        if isinstance(step, Sent):
            draft = Draft(
                body=b"%d" % len(self.sent),
                priority=step.priority,
                recoverable=step.recoverable,
                journal_on_failure=not step.plain,
            )
            self.sent.append(step)
            self.driver.request(self.app, api.Send(self.into, [draft.packet()]))
        elif isinstance(step, Wait):
            self.driver.request(self.app, api.Receive(self.out_of, step.count, MINUTE_MS))
        else:
            self.settle()
        self.take()

    def take(self) -> None:
        outputs = self.driver.node.take()
        self.under_way += [output for output in outputs if isinstance(output, Persist)]

    def settle(self) -> None:
        while self.under_way:
            self.driver.node.commit(self.under_way.pop(0), self.driver.now)
            self.take()

    def given(self) -> list[int]:
        """Return which messages were given to readers, in order; take out what is left first."""
        self.settle()
        self.driver.request(self.app, api.Receive(self.out_of, 1000, 0))
        self.take()
        self.settle()
        found: list[int] = []
        for reply in self.driver.take_answers().values():
            for entry in reply.entries if isinstance(reply, api.Entries) else []:
                packet = decode(entry.packet)
                assert isinstance(packet, UserMessage)
                found.append(int(packet.properties.body))
        return found


@given(steps)
def test_no_message_overtakes_one_of_its_priority(steps: list[Step]) -> None:
    counter = Counter()
    for step in steps:
        counter.step(step)
    given = counter.given()
    assert sorted(given) == list(range(len(counter.sent)))
    for priority in (0, 3):
        alike = [number for number in given if counter.sent[number].priority == priority]
        assert alike == sorted(alike)
