"""Plays histories one after the other, and says what came of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from tests.spark.exactly_once.histories import History
from tests.spark.exactly_once.world import Store, Violation


class Report(msgspec.Struct):
    """What came of histories."""

    violations: dict[int, str] = {}
    events: dict[str, int] = {}
    histories: int = 0
    messages: int = 0
    stops: int = 0
    excused: int = 0

    @property
    def certain(self) -> int:
        """Messages of which nobody was told that they may be lost or come twice."""
        return self.messages - self.excused

    def figures(self) -> str:
        """Return what was played."""
        return (
            f"{self.histories} histories, {self.messages} messages, {self.certain} of them without "
            f"any excuse, {self.stops} stops with a sentence, {self.events}"
        )


def play(folder: Path, seeds: range) -> Report:
    """Play histories, one after the other, on the same two queue managers."""
    stores = [Store(folder, name) for name in ("ALPHA", "BETA")]
    try:
        return play_on(stores, seeds)
    finally:
        for store in stores:
            store.kill()


def play_on(stores: list[Store], seeds: range) -> Report:
    """Play histories on two queue managers that run."""
    report = Report()
    met: Counter[str] = Counter()
    for seed in seeds:
        history = History(stores, seed)
        try:
            history.run()
        except Violation as error:
            told = "\n    ".join(history.events)
            kinds = ", ".join(query.kind for query in history.queries)
            report.violations[seed] = f"{error}\n  to {kinds}\n    {told}"
        report.histories += 1
        met.update(history.happened)
        sent = history.ledger.sent.values()
        report.messages += len(sent)
        report.stops += len(history.stops)
        report.excused += sum(bool(each.may_be_lost or each.may_come_twice) for each in sent)
    report.events = dict(sorted(met.items()))
    return report
