"""Former ways: who was one by the directory, for how long, and how many are remembered."""

from __future__ import annotations

from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.directory.former_ways import FormerWays, ways_of
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.clock import Instant
from openmsmq.model.directory import DirectoryObject
from openmsmq.model.identity import Guid
from openmsmq.model.limits import FORMER_WAY_S, FORMER_WAYS_MAX_COUNT
from openmsmq.model.topology import QueueManagerInfo, RoutingLink
from openmsmq.storage.memory import MemoryStore

SOURCE, SERVER, INTO, OUT, GATE = (Guid(bytes((number,)) * 16) for number in range(1, 6))


def copy_of(*objects: DirectoryObject) -> DirectoryCopy:
    """Return a copy of the directory, of which only the image counts here."""
    copy = DirectoryCopy(Ledger(), MemoryStore())
    copy.image = DirectoryImage(objects)
    return copy


def at(seconds: int) -> Instant:
    return Instant(seconds * 1000, 1_700_000_000 + seconds)


def manager(identifier: Guid, *, routing: bool = False) -> QueueManagerInfo:
    return QueueManagerInfo(
        identifier=identifier, computer_name=identifier.hex()[:8], routing_server=routing
    )


def test_everybody_who_passes_messages_on_is_a_way() -> None:
    source = QueueManagerInfo(
        identifier=SOURCE,
        computer_name="SOURCE",
        in_routing_servers=(INTO,),
        out_routing_servers=(OUT,),
    )
    link = RoutingLink(identifier=SOURCE, site1=INTO, site2=OUT, cost=1, site_gates=(GATE,))
    image = DirectoryImage([source, manager(SERVER, routing=True), link])
    assert ways_of(image) == {SERVER, INTO, OUT, GATE}


def test_who_is_none_any_more_is_remembered_for_a_time() -> None:
    copy = copy_of(manager(SERVER, routing=True), manager(SOURCE))
    former = FormerWays(copy)
    assert not former.has(SERVER, at(0))
    copy.image = DirectoryImage([manager(SERVER), manager(SOURCE)])
    former.heed(at(100))
    assert former.has(SERVER, at(100 + FORMER_WAY_S - 1))
    assert not former.has(SERVER, at(100 + FORMER_WAY_S))
    assert not former.has(SOURCE, at(100))


def test_of_very_many_the_last_ones_are_remembered() -> None:
    managers = [
        manager(Guid(number.to_bytes(16, "big")), routing=True)
        for number in range(FORMER_WAYS_MAX_COUNT + 1)
    ]
    copy = copy_of(*managers)
    former = FormerWays(copy)
    first, *others = managers
    copy.image = DirectoryImage(others)
    former.heed(at(0))
    copy.image = DirectoryImage()
    former.heed(at(1))
    assert not former.has(first.identifier, at(2))
    assert all(former.has(each.identifier, at(2)) for each in others)
