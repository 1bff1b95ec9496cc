"""Histories: what ordinary life does to a stream, at random moments, and what it must not do.

A history is a random sequence, given by its seed, over two queue managers and one or two queries.
Drivers and queue managers are killed. Addresses are spelled otherwise, a queue manager is taken
out of the option, back-ups are put back, checkpoints are deleted, copied and put back, and two
drivers run at once. When a query stops, an operator does what its sentence says.

At the end each message that was acknowledged is in the outputs once, or still in its queue.
Anything else must have been said by a query that stopped, in a sentence that names the queue or
the address and says what to do; and what it says must lead on.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable
from pathlib import Path

from openmsmq.model.errors import QueueExists
from openmsmq.spark.errors import SparkSideError
from tests.spark.exactly_once.drivers import (
    Checkpoint,
    Driver,
    FileOutput,
    ForeachOutput,
    QueueOutput,
    Superseded,
)
from tests.spark.exactly_once.queries import Query, Stop
from tests.spark.exactly_once.world import Ledger, Store, Violation

STEPS_COUNT = 90
"""Steps of drivers in the eventful part of a history."""
EVENT_SHARE = 0.07
SEND_SHARE = 0.22
EVENTS_MAX_COUNT = 6
SETTLE_STEPS_MAX_COUNT = 400
STOPS_MAX_COUNT = 8
"""How often advice is followed without getting on, before it counts as a dead end."""
COPIES_MAX_COUNT = 3
RESTARTS_MAX_COUNT = 3
CATCH_UP_MAX_COUNT = 60
KINDS = ("files", "foreach", "queue", "named queue")
THEME_SHARE = 0.8
ALWAYS = ("driver dies", "driver dies", "driver dies", "manager killed")
THEMES = (
    *("respelled", "spelled twice", "taken out", "restored", "checkpoint deleted"),
    *("older checkpoint", "older checkpoint", "zombie", "two queries"),
)
"""What a history may be about: a few of them at a time, so that one does not hide the other."""
HARMLESS = frozenset({"driver dies", "manager killed", "respelled", "backed up"})
"""Events after which a query has no reason to stop."""


class History:
    """One history, from its seed to its verdict."""

    def __init__(self, stores: list[Store], seed: int) -> None:
        self.rng = random.Random(f"history {seed}")
        self.seed = seed
        self.stores = stores
        self.queue = rf"private$\h{seed}"
        self.ledger = Ledger()
        self.time = 0
        self.names = 0
        self.events: list[str] = []
        self.happened: list[str] = []
        self.stops: list[Stop] = []
        self.backups: list[tuple[Store, Path]] = []
        self.was_deleted = False
        self.was_released = False
        """Whether an operator has taken from a query what it had reserved."""
        for store in stores:
            with store.connect() as manager:
                manager.create_queue(self.queue, transactional=True)
        self.theme = self.rng.sample(THEMES, self.rng.choice((1, 2, 2, 3)))
        self.queries = [self._made_query("first")]
        if "two queries" in self.theme:
            self.theme.remove("two queries")
            self.queries.append(self._made_query("second"))
            self._happened("two queries")

    # Making things.

    def _new_name(self, what: str) -> str:
        self.names += 1
        return f"{what}-{self.seed}-{self.names}"

    def _made_query(self, name: str) -> Query:
        kind = self.rng.choice(KINDS)
        count = self.rng.choice((1, 2, 2)) if name == "first" else 2
        query = Query(name, kind, self.stores[:count], self.queue)
        for store in self.stores:
            query.spelling[store.name] = [self.rng.randrange(3)]
        query.checkpoint = Checkpoint(self._new_name("id"))
        self._add_output(query)
        return query

    def _add_output(self, query: Query) -> None:
        if query.kind == "files":
            query.outputs.append(FileOutput())
        elif query.kind == "foreach":
            query.outputs.append(ForeachOutput())
        else:
            self._add_queue_output(query)

    def _add_queue_output(self, query: Query) -> None:
        queue = rf"private$\{self._new_name('out')}"
        store = self.rng.choice(self.stores)
        with store.connect() as manager:
            manager.create_queue(queue, transactional=True)
        name = self._new_name("name") if query.kind == "named queue" else ""
        query.outputs.append(QueueOutput(store, queue, name))

    def _note(self, event: str) -> None:
        self.events.append(f"{self.time}: {event}")

    def _happened(self, event: str) -> None:
        self.happened.append(event)
        self._note(event)

    # The run.

    def run(self) -> None:
        """Let things happen, then let all come to rest, and compare; raises `Violation`."""
        try:
            self._send()
            for _ in range(STEPS_COUNT):
                self._step()
                if self.rng.random() < SEND_SHARE:
                    self._send()
                if self.rng.random() < EVENT_SHARE and len(self.happened) < EVENTS_MAX_COUNT:
                    self._something_happens()
            self._settle()
        finally:
            for query in self.queries:
                self._end_drivers(query)
            for store in self.stores:
                store.forget_backups()

    def _step(self) -> None:
        query = self.rng.choice([each for each in self.queries if not each.given_up])
        if query.driver is None:
            self._start(query, now=self.rng.random() < 0.3)
        drivers = query.drivers()
        if drivers:
            self._advance(query, self.rng.choice(drivers))

    def _start(self, query: Query, *, now: bool = False) -> None:
        self.time += 1
        try:
            query.driver = Driver(query.checkpoint, query.outputs[-1], query.options(), now=now)
        except SparkSideError as error:
            self._stopped(query, error)

    def _advance(self, query: Query, driver: Driver) -> str:
        """Let a driver go on by a step; gives where it is then."""
        self.time += 1
        where = "stopped"
        try:
            where = driver.step()
        except Superseded:
            self._end(query, driver)
        except SparkSideError as error:
            self._end(query, driver)
            self._stopped(query, error, is_zombie=driver in query.zombies)
        except Exception as error:
            raise Violation(f"no sentence, but {error!r}") from error
        if where == "ended":
            self._end(query, driver)
        if where in ("committed", "idle", "ended"):
            query.stops_in_a_row = 0
            self._take_options_back(query)
        if where == "committed":
            # Somebody copies it often.
            query.copies = [*query.copies, query.checkpoint.copy()][-COPIES_MAX_COUNT:]
        return where

    def _take_options_back(self, query: Query) -> None:
        """Start the query anew without what the operator has set for once."""
        if query.extra:
            self._end_drivers(query)
            # So long it held for what was sent meanwhile, too.
            dropped = "unreadBatches" in query.extra or self.was_released
            self.ledger.excuse(self.stops[-1].sentence, self.stores, lost=dropped, twice=True)
            query.extra.clear()

    def _end(self, query: Query, driver: Driver) -> None:
        driver.die()
        if driver is query.driver:
            query.driver = None
        else:
            query.zombies = [each for each in query.zombies if each is not driver]

    def _end_drivers(self, query: Query) -> None:
        for driver in query.drivers():
            self._end(query, driver)

    def _send(self, store: Store | None = None, count: int | None = None) -> None:
        where = store or self.rng.choice(self.queries[0].stores or self.stores)
        self.ledger.send(where, self.queue, count or self.rng.randint(1, 8), self.time)

    # Events.

    def _something_happens(self) -> None:
        query = self.rng.choice(self.queries)
        about = self.theme if self.theme and self.rng.random() < THEME_SHARE else ALWAYS
        name = self.rng.choice(about)
        happen: Callable[[Query], bool] = getattr(self, f"_{name.replace(' ', '_')}")
        if happen(query):
            self._happened(name)

    def _driver_dies(self, query: Query) -> bool:
        self._end_drivers(query)
        return True

    def _manager_killed(self, _: Query) -> bool:
        self.rng.choice(self.stores).restart()
        return True

    def _respelled(self, query: Query) -> bool:
        self._end_drivers(query)
        for store in self.stores:
            query.spelling[store.name] = [self.rng.randrange(3)]
        return True

    def _spelled_twice(self, query: Query) -> bool:
        self._end_drivers(query)
        query.spelling[self.rng.choice(self.stores).name] = self.rng.sample(range(3), 2)
        return True

    def _taken_out(self, query: Query) -> bool:
        """Take a queue manager out of the option, or put one back."""
        self._end_drivers(query)
        if len(query.stores) == 1:
            query.stores = self.rng.sample(self.stores, 2)
        else:
            query.stores.remove(self.rng.choice(query.stores))
        return True

    def _backed_up(self, _: Query) -> bool:
        store = self.rng.choice(self.stores)
        self.backups.append((store, store.back_up(stopped=self.rng.random() < 0.3)))
        return True

    def _restored(self, query: Query) -> bool:
        if not self.backups:
            self._backed_up(query)
            self._happened("backed up")
            return False
        store, copy = self.rng.choice(self.backups)
        if self.rng.random() < 0.7:
            for each in self.queries:
                self._end_drivers(each)
        numbers_before = self._held(store)
        reached = store.next_arrival(self.queue)
        store.put_back(copy)
        numbers_after = self._held(store)
        for queue, before in numbers_before.items():
            is_output = queue != self.queue
            self.ledger.put_back(before, numbers_after[queue], output=is_output)
        if self.rng.random() < 0.6:
            self._catch_up(store, reached)
        return bool(query)

    def _catch_up(self, store: Store, reached: int) -> None:
        """Let a store have the same arrival numbers again, for other messages."""
        for _ in range(RESTARTS_MAX_COUNT):
            missing = reached - store.next_arrival(self.queue)
            if missing <= CATCH_UP_MAX_COUNT:
                self._send(store, max(missing, 0) + self.rng.randint(1, 4))
                return
            # Each start leaves out many numbers.
            store.restart()

    def _held(self, store: Store) -> dict[str, set[int]]:
        outputs = [
            each.queue
            for query in self.queries
            for each in query.outputs
            if isinstance(each, QueueOutput) and each.store is store
        ]
        return {name: set(store.numbers(name)) for name in (self.queue, *outputs)}

    def _checkpoint_deleted(self, query: Query) -> bool:
        self._end_drivers(query)
        query.checkpoint = Checkpoint(self._new_name("id"))
        self.was_deleted = True
        query.latest = None
        return True

    def _older_checkpoint(self, query: Query) -> bool:
        if not query.copies:
            return False
        self._end_drivers(query)
        query.latest = query.latest or query.checkpoint
        query.checkpoint = self.rng.choice(query.copies).copy()
        return True

    def _zombie(self, query: Query) -> bool:
        """Let the driver go on beside the next one of the same checkpoint."""
        if query.driver is None:
            return False
        query.zombies.append(query.driver)
        query.driver = None
        return True

    # The operator.

    def _stopped(self, query: Query, error: SparkSideError, *, is_zombie: bool = False) -> None:
        sentence = str(error)
        places = [self.queue, *(text for store in self.stores for text in store.spellings())]
        places += [each.queue for each in query.outputs if isinstance(each, QueueOutput)]
        if not any(place in sentence for place in places):
            raise Violation(f"a sentence that names no queue and no address: {sentence}")
        offered = [name for name, pattern in ADVICE.items() if re.search(pattern, sentence)]
        if HARMLESS.issuperset(self.happened):
            raise Violation(f"stopped without need: {sentence}")
        query.stops_in_a_row += 1
        possible = [name for name in offered if self._is_possible(query, name)]
        advice = self.rng.choice(possible) if possible else ""
        self.stops.append(Stop(self.time, query.name, sentence, advice))
        self._note(f"STOP of {query.name}: {sentence} -> {advice}")
        if is_zombie:
            return
        self._keep_one_reader(query)
        if not possible:
            raise Violation(f"a sentence that says nothing that can be done: {sentence}")
        if query.stops_in_a_row > STOPS_MAX_COUNT:
            raise Violation(f"a dead end: {sentence}")
        named = [s for s in self.stores if any(text in sentence for text in s.spellings())]
        getattr(self, f"_do_{advice}")(query, sentence, named or self.stores)

    def _keep_one_reader(self, query: Query) -> None:
        """Give one of two queries up that keep each other out: a queue has one reader."""
        if query.stops_in_a_row > STOPS_MAX_COUNT // 2 and len(self.queries) > 1:
            loser = self.queries[1]
            loser.given_up = True
            self._end_drivers(loser)

    def _is_possible(self, query: Query, advice: str) -> bool:
        if advice == "newer_checkpoint":
            return query.latest is not None
        if advice == "stop_other":
            return any(query.zombies) or len(self.queries) > 1
        if advice == "put_back":
            return len(query.stores) < len(self.stores)
        if advice in ("other_name", "forget"):
            return query.kind == "named queue"
        return True

    def _do_go_on(self, query: Query, sentence: str, stores: list[Store]) -> None:
        query.extra["failOnDataLoss"] = "false"
        self.ledger.excuse(sentence, self.stores, lost=self.was_released, twice=True)
        del stores

    def _do_drop_unread(self, query: Query, sentence: str, stores: list[Store]) -> None:
        query.extra["unreadBatches"] = "drop"
        self.ledger.excuse(sentence, self.stores, lost=True, twice=True)
        del stores

    def _do_again(self, query: Query, sentence: str, stores: list[Store]) -> None:
        self._end_drivers(query)
        del sentence, stores

    def _do_create(self, query: Query, sentence: str, stores: list[Store]) -> None:
        self._end_drivers(query)
        for store in stores:
            self._create_missing(query, store)
        del sentence

    def _create_missing(self, query: Query, store: Store) -> None:
        """Create the queues that a back-up does not have."""
        outputs = [each for each in query.outputs if isinstance(each, QueueOutput)]
        names = [self.queue, *(each.queue for each in outputs if each.store is store)]
        with store.connect() as manager:
            for name in names:
                with contextlib.suppress(QueueExists):
                    manager.create_queue(name, transactional=True)

    def _do_begin_anew(self, query: Query, sentence: str, stores: list[Store]) -> None:
        self._end_drivers(query)
        query.checkpoint = Checkpoint(self._new_name("id"))
        query.latest = None
        query.copies.clear()
        if re.search(r"new output|another name", sentence):
            self._add_output(query)
        self.ledger.excuse(sentence, stores, lost=False, twice=True)

    def _do_release(self, query: Query, sentence: str, stores: list[Store]) -> None:
        for store in stores:
            with store.connect() as manager:
                manager.release(self.queue)
        self.was_released = True
        self.ledger.excuse(sentence, stores, lost=False, twice=True)
        del query

    def _do_other_reader(self, query: Query, sentence: str, stores: list[Store]) -> None:
        query.reader = self._new_name("reader")
        del sentence, stores

    def _do_newer_checkpoint(self, query: Query, sentence: str, stores: list[Store]) -> None:
        assert query.latest is not None
        self._end_drivers(query)
        query.checkpoint, query.latest = query.latest, None
        del sentence, stores

    def _do_put_back(self, query: Query, sentence: str, stores: list[Store]) -> None:
        query.stores = list(self.stores)
        del sentence, stores

    def _do_stop_other(self, query: Query, sentence: str, stores: list[Store]) -> None:
        for each in self.queries:
            self._end_drivers(each)
        del query, sentence, stores

    def _do_other_name(self, query: Query, sentence: str, stores: list[Store]) -> None:
        self._end_drivers(query)
        output = query.outputs[-1]
        assert isinstance(output, QueueOutput)
        output.name = self._new_name("name")
        self.ledger.excuse(sentence, self.stores, lost=False, twice=True)
        del stores

    def _do_forget(self, query: Query, sentence: str, stores: list[Store]) -> None:
        output = query.outputs[-1]
        assert isinstance(output, QueueOutput)
        with output.store.connect() as manager:
            manager.forget_query(output.name)
        self.ledger.excuse(sentence, self.stores, lost=False, twice=True)
        del stores

    # The end.

    def _settle(self) -> None:
        """Let the queries come to rest, twice, so that nothing of the last batch is left open."""
        self._note("settling")
        for query in self.queries:
            for driver in list(query.zombies):
                self._end(query, driver)
        for _ in range(2):
            for query in self.queries:
                self._rest(query)
                if len(self.queries) > 1:
                    self._end_drivers(query)
            self._send()
        for query in self.queries:
            self._rest(query)
            self._end_drivers(query)
        self._compare()

    def _rest(self, query: Query) -> None:
        for _ in range(SETTLE_STEPS_MAX_COUNT):
            if query.given_up:
                return
            if query.driver is None:
                self._start(query)
            elif self._advance(query, query.driver) == "idle":
                return
        raise Violation("a query that does not come to rest")

    def _compare(self) -> None:
        found = [row for each in self.queries for output in each.outputs for row in output.rows()]
        waiting = {number for store in self.stores for number in store.numbers(self.queue)}
        read = [] if len(self.queries) > 1 else self.queries[0].stores
        if self.was_deleted:
            # Of what a back-up has brought back, a checkpoint that is gone could not tell.
            for each in self.ledger.sent.values():
                if each.was_brought_back:
                    each.may_come_twice = each.may_come_twice or "nobody could know"
        problems = self.ledger.problems(found, waiting, read)
        if problems:
            raise Violation("; ".join(problems))


ADVICE = {
    "go_on": r"failOnDataLoss=false",
    "drop_unread": r"unreadBatches=drop",
    "begin_anew": r"new checkpoint",
    "release": r"queue release|release the queue",
    "other_reader": r"option reader",
    "newer_checkpoint": r"newer checkpoint|checkpoint that belongs|with its checkpoint"
    r"|with that checkpoint",
    "put_back": r"put it back",
    "stop_other": r"stop it first",
    "other_name": r"another name",
    "forget": r"query forget",
    "again": r"write it again",
    "create": r"create it",
}
"""What a sentence may advise, and how it says so."""
