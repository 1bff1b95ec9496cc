"""Who may post into a public queue, the directory says. [MQSRM 3.1.5.1.12]"""

from __future__ import annotations

import pytest
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.directory.rows import row_of
from openmsmq.manager.config import DirectoryConfig
from openmsmq.model.access import QueueAccess
from openmsmq.model.directory import DirectoryRole, ObjectKind, Removal
from openmsmq.model.queue import QueueProperties
from openmsmq.security.access.sids import EVERYONE, unix_user
from tests.conformance.marks import shows
from tests.unit.manager.access_cases import only
from tests.unit.manager.posts.mailroom import Mailroom, message

SHOP = "shop"
URL = "http://alpha/msmq/shop"
WRITE = QueueAccess.WRITE_MESSAGE
ACCESS = "MQSRM-3.1.5.1.12"


@pytest.fixture
def room() -> Mailroom:
    """A queue manager with a directory, and a public queue."""
    made = Mailroom(directory=DirectoryConfig(role=DirectoryRole.ORIGINAL))
    made.ok(api.CreateQueue(SHOP))
    return made


def published(room: Mailroom) -> QueueProperties:
    """The queue as the directory has it."""
    (found,) = room.manager.directory.copy.image.queues.values()
    return found


def says(room: Mailroom, descriptor: bytes) -> None:
    """Let somebody change in the directory, and nowhere else, who may send to the queue."""
    changed = structs.replace(published(room), security_descriptor=descriptor)
    room.ok(api.ChangeDirectory([row_of(changed)]))


@shows(ACCESS, 4, 6)
def test_the_directory_says_whether_everybody_may_send(room: Mailroom) -> None:
    assert room.post(message(1, to=URL), b"1") == 200
    for number, (descriptor, status) in enumerate(
        (
            (only(unix_user(1000), WRITE), 400),
            (only(EVERYONE, WRITE), 200),
            (only(EVERYONE, QueueAccess.PEEK_MESSAGE), 400),
            (b"", 200),
        ),
        2,
    ):
        says(room, descriptor)
        assert room.post(message(number, to=URL), b"%d" % number) == status
    assert room.bodies(SHOP) == [b"1", b"3", b"5"]


@shows(ACCESS, 5)
def test_a_queue_that_the_directory_does_not_know_takes_nothing(room: Mailroom) -> None:
    known = published(room)
    assert room.post(message(1, to=URL)) == 200
    room.ok(api.ChangeDirectory([row_of(Removal(ObjectKind.QUEUE, known.identifier))]))
    assert room.post(message(2, to=URL)) == 400
    # One of the same name is another queue, and has none of it.
    room.ok(api.CreateQueue(SHOP))
    assert room.bodies(SHOP) == []
