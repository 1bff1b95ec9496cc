"""What a queue manager believes of its entries, compared with its store, at each seal and settle.

The queue manager itself asserts what costs nothing. This looks at every entry of every queue, which
only a simulation can afford, and it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from openmsmq.manager.queues.entries import EntryState
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.sim.violation import Violation
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader
from openmsmq.storage.records import FACTS_BYTES

_EVERYTHING: Final = 1 << 31
_OUT: Final = (EntryState.LEAVING, EntryState.RECALLED)


def check(node: str, queues: Iterable[LocalQueue], store: StoreReader) -> None:
    """Raise `Violation` if a queue believes of its entries what is not so."""
    for queue in queues:
        problem = _problem(queue, store)
        if problem:
            raise Violation(f"{node} believes of {queue.name} what is not so: {problem}")


def _problem(queue: LocalQueue, store: StoreReader) -> str:
    """Return what is wrong with a queue; empty if nothing is."""
    start, stop = records.entry_key(queue.id, 0), records.entries_end(queue.id)
    stored = {
        records.lookup_of(key): len(value) - FACTS_BYTES
        for key, value in store.scan(start, stop, _EVERYTHING)
    }
    entries = queue.entries
    arriving = set(entries.arriving)
    if not stored and not arriving:
        if queue.count or queue.size:
            return f"it counts {queue.count} messages with {queue.size} bytes, and has none"
        return f"{len(entries.held)} entries that are not there are held" if entries.held else ""
    if arriving & stored.keys():
        return f"{sorted(arriving & stored.keys())} are arriving, and in the store"
    lost = entries.held.keys() - stored.keys() - arriving
    if lost:
        return f"{sorted(lost)} are held, and not there"
    leaving = {each for each in {*stored, *arriving} if entries.state(each) in _OUT}
    count = len(stored) + len(arriving) - len(leaving)
    if queue.count != count:
        return f"it counts {queue.count} messages, and has {count}"
    size = sum(size for each, size in stored.items() if each not in leaving)
    if not arriving and queue.size != size:
        return f"it counts {queue.size} bytes, and has {size}"
    if not queue.express_ids <= (stored.keys() | arriving) - leaving:
        return "it counts express messages that are not there"
    hidden = [each for each in stored if each < queue.floor and not queue.is_held(each)]
    if hidden:
        return f"{sorted(hidden)} are available, and below {queue.floor} nobody looks"
    return ""
