"""A query of a history as its operator sees it, and how it stops."""

from __future__ import annotations

import msgspec

from tests.spark.exactly_once.drivers import Checkpoint, Driver, Output
from tests.spark.exactly_once.world import Store

BATCH_MESSAGES = 12


class Stop(msgspec.Struct):
    """A query has stopped with a sentence."""

    time: int
    query: str
    sentence: str
    advice: str


class Query:
    """A query as its operator sees it: settings, a checkpoint, an output, and drivers."""

    def __init__(self, name: str, kind: str, stores: list[Store], queue: str) -> None:
        self.name = name
        self.kind = kind
        self.stores = list(stores)
        self.queue = queue
        self.spelling = {store.name: [0] for store in stores}
        self.reader = ""
        self.extra: dict[str, str] = {}
        """Options that the operator has set because a sentence said so."""
        self.checkpoint = Checkpoint("")
        self.copies: list[Checkpoint] = []
        self.latest: Checkpoint | None = None
        """The checkpoint that was in use before an older copy was put back."""
        self.outputs: list[Output] = []
        self.driver: Driver | None = None
        self.zombies: list[Driver] = []
        self.stops_in_a_row = 0
        self.given_up = False

    def options(self) -> dict[str, str]:
        texts = [
            store.spellings()[place] for store in self.stores for place in self.spelling[store.name]
        ]
        options = {
            "qm": ",".join(texts),
            "queue": self.queue,
            "columns": "application_tag",
            "maxMessagesPerTrigger": str(BATCH_MESSAGES),
            "reconnectWithin": "10",
        }
        return options | ({"reader": self.reader} if self.reader else {}) | self.extra

    def drivers(self) -> list[Driver]:
        return [*self.zombies, *([self.driver] if self.driver else [])]
