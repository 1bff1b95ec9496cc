"""One original of a directory and several copies, in any order of events, with crashes and full
disks: whoever has a copy has exactly what the original had at that position, and the public queues
of a queue manager are those that the directory says it has.

Nothing here happens by itself. A batch stays under way until a rule lets it become durable, fail,
or be lost in a crash; a question to the directory is answered by whom a rule picks.
"""

from __future__ import annotations

import os
import random
from unittest.mock import patch

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from openmsmq.api import messages as api
from openmsmq.directory.limits import DIRECTORY_POLL_S
from openmsmq.directory.rows import changes_in, row_of
from openmsmq.manager.config import DirectoryConfig, ManagerConfig
from openmsmq.manager.manager import QueueManager
from openmsmq.manager.outputs import AskDirectory, ChangeDirectory, Persist, Respond
from openmsmq.model.clock import Instant
from openmsmq.model.directory import (
    Change,
    DirectoryChanges,
    DirectoryObject,
    DirectoryRole,
    ObjectKind,
    Position,
    Removal,
    kind_of,
)
from openmsmq.model.errors import InsufficientResources, MsmqError, NoDirectory
from openmsmq.model.identity import Guid
from openmsmq.model.limits import DIRECTORY_PROBE_S
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import DistributionList
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.port import StoreFull

# `make test-fast` asks for fewer. `make model`, which is about the other model, gets no more.
EXAMPLES = min(int(os.environ.get("OPENMSMQ_MODEL_EXAMPLES", "200")), 200)
NAMES = ("OFFICE", "SHOP", "DEPOT")
QUEUES = ("a", "b")
LISTS = tuple(Guid(bytes((number,)) * 16) for number in range(1, 3))
ROUNDS_MAX_COUNT = 40
START_S = 1_700_000_000

State = dict[tuple[ObjectKind, Guid], DirectoryObject]
Asked = tuple[QueueManager, AskDirectory | ChangeDirectory]

computers = st.sampled_from(NAMES)
copies = st.sampled_from(NAMES[1:])
outcomes = st.sampled_from(["durable"] * 6 + ["full", "crash", "later"])
queue_names = st.sampled_from(QUEUES)


def changed(state: State, changes: tuple[Change, ...]) -> State:
    """The model of a directory is a dictionary."""
    after = dict(state)
    for change in changes:
        if isinstance(change, Removal):
            after.pop((change.kind, change.identifier), None)
        else:
            after[kind_of(change), change.identifier] = change
    return after


class Computer:
    """A queue manager, its disk and one application."""

    def __init__(self, name: str, now: Instant) -> None:
        role = DirectoryRole.ORIGINAL if name == NAMES[0] else DirectoryRole.COPY
        self.name = name
        self.config = ManagerConfig(name=name, directory=DirectoryConfig(role=role))
        self.store = MemoryStore()
        self.starts = 0
        self.start(now)

    def start(self, now: Instant) -> None:
        self.starts += 1
        rng = random.Random(f"{self.name} {self.starts}")
        self.manager = QueueManager(self.config, rng, self.store, now)
        self.manager.connected(1)
        self.persist: Persist | None = None
        self.asked: list[Asked] = []
        self.answers: dict[int, api.AnyReply] = {}
        self.calls = 0
        self.collect()

    def collect(self) -> None:
        """Note what is to be done; nothing is done yet."""
        while outputs := self.manager.take_outputs():
            for output in outputs:
                match output:
                    case Persist():
                        assert self.persist is None
                        self.persist = output
                    case Respond(_, call, reply):
                        self.answers[call] = reply
                    case AskDirectory() | ChangeDirectory():
                        self.asked.append((self.manager, output))
                    case _:
                        pass

    def ask(self, request: api.AnyRequest, now: Instant) -> int:
        self.calls += 1
        self.manager.request(1, self.calls, request, now)
        self.collect()
        return self.calls

    def answer(self, request: api.AnyRequest, now: Instant) -> api.AnyReply:
        """Ask, and let the disk do what the answer waits for."""
        call = self.ask(request, now)
        while self.persist is not None:
            self.settle(now)
        return self.answers[call]

    def settle(self, now: Instant, *, has_room: bool = True) -> None:
        """Let the disk say what becomes of the batch that is under way."""
        persist, self.persist = self.persist, None
        if persist is None:
            return
        if has_room:
            self.store.commit(persist.batch)
            self.manager.persisted(persist.ticket, now)
        else:
            error = InsufficientResources(str(StoreFull("no room")))
            self.manager.persist_failed(persist.ticket, error, now)
        self.collect()

    @property
    def state(self) -> State:
        image = self.manager.directory.copy.image
        return {(kind_of(value), value.identifier): value for value in image}

    @property
    def position(self) -> Position:
        return self.manager.directory.copy.position


class Enterprise(RuleBasedStateMachine):
    """One original and two copies, of which each may serve the other."""

    def __init__(self) -> None:
        super().__init__()
        self.now = Instant(0, START_S)
        self.patches = [
            patch("openmsmq.manager.directory.copy.DIRECTORY_REMOVED_MAX_COUNT", 3),
            patch("openmsmq.manager.requests.directory.DIRECTORY_PART_MAX_BYTES", 900),
        ]
        for each in self.patches:
            each.start()
        self.history: dict[Position, State] = {}
        """What the original had at each position."""
        self.expected: State = {}
        """What the original must have by all that it has agreed to."""
        self.under_way: dict[int, tuple[Change, ...]] = {}
        """Changes that the original has not answered yet, by the number of the call."""
        self.lost: set[Guid] = set()
        """Queues of copies that a new directory has never heard of."""
        self.computers = {name: Computer(name, self.now) for name in NAMES}
        self.office = self.computers[NAMES[0]]
        self.office.settle(self.now)
        self.expected = self.office.state
        self.come_to_rest()

    # What happens.

    @rule(name=computers, outcome=outcomes)
    def disk(self, name: str, outcome: str) -> None:
        """What becomes of the batch under way, and of what has been built on it."""
        computer = self.computers[name]
        match outcome:
            case "durable":
                while computer.persist is not None:
                    computer.settle(self.now)
            case "full":
                computer.settle(self.now, has_room=False)
            case "crash":
                self.crash(computer)
            case _:
                pass

    def crash(self, computer: Computer) -> None:
        if computer is self.office:
            self.heard()
        computer.store = computer.store.crash()
        computer.start(self.now)
        if computer is self.office:
            self.forget_calls()

    @rule(name=copies, server=computers, outcome=outcomes, is_new=st.booleans())
    def look(self, name: str, server: str, outcome: str, is_new: bool) -> None:
        """A copy looks into the directory at any server; at none if that is itself.

        An older question may come to its end instead.
        """
        computer = self.computers[name]
        if is_new or not computer.asked:
            computer.ask(api.RefreshDirectory(), self.now)
        self.carry(computer, self.computers[server])
        self.disk(name, outcome)

    @rule(seconds=st.sampled_from([1, DIRECTORY_POLL_S, DIRECTORY_PROBE_S]))
    def time_passes(self, seconds: int) -> None:
        self.now = Instant(self.now.ticks_ms + seconds * 1000, self.now.unix_s + seconds)
        for computer in self.computers.values():
            computer.manager.wake(self.now)
            computer.collect()

    @precondition(lambda self: not self.under_way and len(self.history) > 5)
    @rule(chance=st.integers(0, 4))
    def directory_is_made_anew(self, chance: int) -> None:
        """The office has lost its disk."""
        if chance:
            return
        starts = self.office.starts
        for computer in self.computers.values():
            self.lost |= set(local_queues(computer, self.now))
        self.office.store = MemoryStore()
        self.office.starts = starts
        self.office.start(self.now)
        self.office.settle(self.now)
        self.expected = self.office.state

    # What must be so.

    @invariant()
    def copies_are_what_the_original_was(self) -> None:
        self.heard()
        self.history[self.office.position] = self.office.state
        for name, computer in self.computers.items():
            if computer.position != Position():
                assert computer.state == self.history[computer.position], name

    @invariant()
    def the_original_has_what_it_agreed_to(self) -> None:
        if not self.under_way:
            assert self.office.state == self.expected

    @rule(chance=st.integers(0, 9))
    def all_may_come_to_rest(self, chance: int) -> None:
        if not chance:
            self.come_to_rest()

    def come_to_rest(self) -> None:
        for _ in range(ROUNDS_MAX_COUNT):
            for computer in self.computers.values():
                while computer.persist is not None:
                    computer.settle(self.now)
            self.heard()
            for computer in self.computers.values():
                while computer.asked:
                    self.carry(computer, self.office, at_once=True)
            if self.is_at_rest:
                break
            self.time_passes(DIRECTORY_POLL_S)
        assert self.is_at_rest
        assert not self.under_way
        for name, computer in self.computers.items():
            assert computer.state == self.expected, name
            own = computer.manager.directory.copy.image.queues_of(computer.manager.identifier)
            published = {queue.identifier: shown(queue) for queue in own}
            local = local_queues(computer, self.now)
            kept = local.keys() - published.keys()
            assert kept <= self.lost, name
            blocked = {local[identifier][0] for identifier in kept}
            missing = published.keys() - local.keys()
            assert all(published[key][0] in blocked for key in missing), name
            assert all(local[key] == published[key] for key in published if key in local), name
            problem = self.problem_of(computer)
            assert bool(kept or missing) == bool(problem), (name, problem)

    def teardown(self) -> None:
        try:
            self.come_to_rest()
        finally:
            for each in self.patches:
                each.stop()

    # Help.

    def problem_of(self, computer: Computer) -> str:
        status = computer.answer(api.GetStatus(), self.now)
        assert isinstance(status, api.Status)
        return status.directory_problem

    @property
    def is_at_rest(self) -> bool:
        return all(
            computer.persist is None
            and not computer.asked
            and computer.position == self.office.position
            and not computer.manager.directory.problem
            for computer in self.computers.values()
        )

    def change(self, changes: tuple[Change, ...]) -> int:
        rows = [row_of(change) for change in changes]
        call = self.office.ask(api.ChangeDirectory(rows), self.now)
        self.under_way[call] = changes
        self.heard()
        return call

    def heard(self) -> None:
        """Take note of what the original has answered."""
        for call in list(self.under_way):
            reply = self.office.answers.get(call)
            if reply is not None:
                changes = self.under_way.pop(call)
                if not isinstance(reply, api.Failed):
                    self.expected = changed(self.expected, changes)

    def forget_calls(self) -> None:
        """The original has crashed: nobody knows which of the last changes it has."""
        possible = [self.expected]
        for changes in self.under_way.values():
            possible += [changed(state, changes) for state in possible]
        self.under_way.clear()
        assert self.office.state in possible or len(possible) > 64
        self.expected = self.office.state

    def carry(self, computer: Computer, server: Computer, *, at_once: bool = False) -> None:
        if not computer.asked:
            return
        manager, output = computer.asked.pop(0)
        try:
            if server is computer:
                raise NoDirectory("nobody answers")
            if isinstance(output, AskDirectory):
                manager.directory_told(self.read(server, output.position), self.now)
            else:
                made = self.written(output.changes, at_once=at_once)
                manager.directory_changed(output.ticket, made, self.now)
        except MsmqError as error:
            if isinstance(output, AskDirectory):
                manager.directory_failed(error, self.now)
            else:
                manager.directory_refused(output.ticket, error, self.now)
        computer.collect()

    def read(self, server: Computer, position: Position) -> DirectoryChanges:
        """Read in parts, as others do."""
        rows: list[api.ObjectRow] = []
        while True:
            request = api.ReadDirectory(bytes(position.incarnation), position.number, len(rows))
            call = server.ask(request, self.now)
            reply = server.answers.get(call)
            if reply is None:
                raise NoDirectory("the answer waits for the disk of the server for too long")
            if isinstance(reply, api.Failed):
                raise MsmqError.from_code(reply.code, reply.detail)
            assert isinstance(reply, api.DirectoryPart)
            rows += reply.rows
            if not reply.has_more:
                told = Position(Guid(reply.incarnation), reply.number)
                return DirectoryChanges(told, changes_in(rows), reply.is_complete)

    def written(self, changes: tuple[Change, ...], *, at_once: bool) -> tuple[Change, ...]:
        call = self.change(changes)
        if at_once:
            while self.office.persist is not None:
                self.office.settle(self.now)
        reply = self.office.answers.get(call)
        self.heard()
        if reply is None:
            raise NoDirectory("nobody says whether it was changed")
        if isinstance(reply, api.Failed):
            raise MsmqError.from_code(reply.code, reply.detail)
        assert isinstance(reply, api.DirectoryChanged)
        return changes_in(reply.rows)


def shown(queue: QueueProperties) -> tuple[str, str, bool, int]:
    name = queue.path_name.rpartition("\\")[2]
    return name, queue.label, queue.journaling, queue.quota_kb


def local_queues(computer: Computer, now: Instant) -> dict[Guid, tuple[str, str, bool, int]]:
    reply = computer.answer(api.ListQueues(), now)
    assert isinstance(reply, api.Queues)
    return {
        Guid(queue.identifier): (queue.path_name, queue.label, queue.journaling, queue.quota_kb)
        for queue in reply.queues
        if queue.is_public
    }


class Copies(Enterprise):
    """Objects that belong to nobody."""

    @rule(
        numbers=st.lists(st.sampled_from(range(len(LISTS))), min_size=1, unique=True),
        word=st.sampled_from(["", "one", "two"]),
        outcome=outcomes,
    )
    def change_lists(self, numbers: list[int], word: str, outcome: str) -> None:
        """Objects that belong to nobody change to and fro, come and go."""
        self.change(
            tuple(
                DistributionList(identifier=LISTS[number], name=f"{word} {number}")
                if word
                else Removal(ObjectKind.LIST, LISTS[number])
                for number in numbers
            )
        )
        self.disk(NAMES[0], outcome)


class Owners(Enterprise):
    """Public queues, changed by their owners and by administrators."""

    @rule(
        owner=copies,
        name=queue_names,
        word=st.sampled_from(["", "new", "old", "another", "another"]),
        outcome=outcomes,
    )
    def change_queue(self, owner: str, name: str, word: str, outcome: str) -> None:
        """An administrator publishes, changes or removes a queue; or makes it anew."""
        manager = self.computers[owner].manager.identifier
        path = f"{owner}\\{name}"
        at_path = [
            queue
            for queue in self.office.manager.directory.copy.image.queues.values()
            if queue.path_name == path
        ]
        changes: list[Change] = [
            Removal(ObjectKind.QUEUE, queue.identifier)
            for queue in at_path
            if word in ("", "another")
        ]
        if word and at_path and word != "another":
            changes.append(msgspec.structs.replace(at_path[0], label=word, quota_kb=len(word)))
        elif word:
            # The identifiers sort before and after those that are there.
            low = random.Random(len(self.history)).randbytes(15)
            changes.append(
                QueueProperties(
                    identifier=Guid(bytes((len(self.history) * 37 % 255 + 1,)) + low),
                    path_name=path,
                    kind=QueueKind.PUBLIC,
                    manager=manager,
                    label=word,
                )
            )
        self.change(tuple(changes))
        self.disk(NAMES[0], outcome)

    @rule(name=computers, queue=queue_names, what=st.sampled_from(["create", "change", "delete"]))
    def application(self, name: str, queue: str, what: str) -> None:
        """An application works with a queue of its computer."""
        path = f".\\{queue}"
        requests: dict[str, api.AnyRequest] = {
            "create": api.CreateQueue(path, label=what),
            "change": api.ChangeQueue(path, label=what, journaling=True),
            "delete": api.DeleteQueue(path),
        }
        computer = self.computers[name]
        before = computer.state
        call = computer.ask(requests[what], self.now)
        if computer is self.office and computer.state != before:
            difference = [
                value for key, value in computer.state.items() if before.get(key) != value
            ]
            gone = [Removal(*key) for key in before if key not in computer.state]
            self.under_way[call] = (*difference, *gone)


SETTINGS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=False,
)
Copies.TestCase.settings = SETTINGS
Owners.TestCase.settings = SETTINGS
TestCopies = Copies.TestCase
TestOwners = Owners.TestCase
