"""How a mistake of ours is logged that costs one caller and not the queue manager."""

from __future__ import annotations

import traceback

from openmsmq.runtime.logs import Event, EventLog


def note_defect(
    log: EventLog, peer: str, door: str, error: Exception, event: Event = Event.RPC_DEFECT
) -> None:
    """Log it, with the place where it was met."""
    where = " ".join(traceback.format_exception(error)[-2:])
    log.error(event, peer=peer, door=door, error=repr(error), where=where)
