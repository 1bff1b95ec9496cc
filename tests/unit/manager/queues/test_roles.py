"""What queues can do follows from their roles, and the store knows the roles by the same words."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.manager.queues.roles import CAPABILITIES
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.queue import QueueProperties, QueueRole
from openmsmq.storage import records
from openmsmq.storage.records import QueueRecord

WORDS = {
    QueueRole.APPLICATION: "queue",
    QueueRole.JOURNAL: "journal",
    QueueRole.SUBQUEUE: "subqueue",
    QueueRole.SYSTEM: "system",
    QueueRole.OUTGOING: "outgoing",
    QueueRole.AWAITING: "awaiting",
}
"""As every store since the first release has them."""


class _OldRecord(msgspec.Struct, frozen=True):
    """A record as releases wrote it that knew roles as text."""

    properties: QueueProperties
    role: str = "queue"
    parent: int = 0
    guest: str = ""
    reports: bool = False


def test_each_role_has_its_capabilities() -> None:
    assert set(CAPABILITIES) == set(QueueRole) == set(WORDS)


@pytest.mark.parametrize("role", QueueRole)
def test_a_store_of_an_earlier_release_has_the_same_bytes(role: QueueRole) -> None:
    properties = QueueProperties(identifier=NIL_GUID, path_name="private$\\orders")
    earlier = records.encode_record(_OldRecord(properties, WORDS[role], 7, "guest", True))  # type: ignore[arg-type]
    now = QueueRecord(properties, role, 7, "guest", True)
    assert records.encode_record(now) == earlier
    assert records.decode_record(earlier, records.QueueRecord) == now


def names(capability: str) -> set[str]:
    return {role.name for role, can in CAPABILITIES.items() if getattr(can, capability)}


@pytest.mark.parametrize(
    ("capability", "roles"),
    [
        ("be_sent_to", {"APPLICATION", "OUTGOING"}),
        ("take_messages", {"APPLICATION"}),
        ("take_moved", {"APPLICATION", "SUBQUEUE"}),
        ("stand_alone", {"APPLICATION"}),
        ("lead_away", {"OUTGOING"}),
        ("hold_sent", {"OUTGOING", "AWAITING"}),
        ("hold_copies", {"JOURNAL"}),
        ("belong_to_manager", {"SYSTEM"}),
        ("be_part", {"SUBQUEUE"}),
        ("be_charged", {"APPLICATION", "SYSTEM"}),
    ],
)
def test_only_some_roles_can(capability: str, roles: set[str]) -> None:
    assert names(capability) == roles


def test_a_message_that_has_arrived_and_waits_for_its_end_is_not_lost_when_its_time_is_up() -> None:
    assert names("tell_of_expiry") == {role.name for role in QueueRole} - {"AWAITING"}
