"""What every room of a queue manager stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from openmsmq.manager.askers import Acting
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.notices import Notices
from openmsmq.manager.outputs import Output
from openmsmq.manager.turn.counters import Counters
from openmsmq.manager.turn.deadlines import Deadlines
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.clock import Instant
from openmsmq.storage.port import StoreReader

if TYPE_CHECKING:
    import random


class Foundation(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """How it is set up, what is durable, and what becomes so with the present turn."""

    config: ManagerConfig
    reader: StoreReader
    """What the disk has, and what is on its way there."""
    ledger: Ledger
    """What becomes durable with the present turn, and what follows."""
    counters: Counters
    """Who this queue manager is, and numbers that are never given twice."""
    deadlines: Deadlines
    """Which messages expire next."""
    outputs: list[Output]
    """What the driver is asked to do, in the order in which that came up."""
    notices: Notices
    """What the operator hears."""
    acting: Acting
    """On whose word this turn acts."""
    rng: random.Random
    """Identifiers that nobody guesses; the driver has seeded it."""
    started: Instant
    """When this life of the queue manager began."""
