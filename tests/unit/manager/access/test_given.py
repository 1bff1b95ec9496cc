"""A queue that is created with rights never has others, not even for a moment."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.access import MANAGER_DEFAULT, queue_descriptor
from openmsmq.security.access.descriptors import AccessEntry, Descriptor, decode, encode
from openmsmq.security.access.sids import ADMINISTRATORS, Sid
from tests.unit.manager.access.test_control import ALICE, BOB, Company

CLOSED = r"private$\closed"
PEEK = int(QueueAccess.PEEK_MESSAGE)
SEND = int(QueueAccess.WRITE_MESSAGE)


def descriptor(*entries: AccessEntry, owner: bytes = b"") -> bytes:
    return encode(Descriptor(owner, b"", entries))


@pytest.fixture
def company() -> Company:
    made = Company()
    manager = decode(MANAGER_DEFAULT)
    may_create = AccessEntry(ALICE, int(ManagerAccess.CREATE_QUEUE))
    entries = (*(manager.entries or ()), may_create)
    request = api.SetSecurity("", encode(Descriptor(manager.owner, b"", entries)))
    assert made.ask(request, made.root) == api.Done()
    return made


def create(company: Company, who: int, security: bytes) -> api.AnyReply | None:
    return company.ask(api.CreateQueue(CLOSED, security=security), who)


def owner_told_to(company: Company, who: int) -> Sid:
    """An owner may always see the rights."""
    shown = company.ask(api.GetSecurity(CLOSED), who)
    assert isinstance(shown, api.Security)
    return Sid(decode(shown.descriptor).owner)


def test_a_new_queue_has_the_rights_that_it_is_created_with(company: Company) -> None:
    only_bob = descriptor(AccessEntry(BOB, SEND | PEEK))
    assert isinstance(create(company, company.root, only_bob), api.Queues)

    def opens(who: int, access: AccessMode) -> bool:
        return isinstance(company.ask(api.OpenQueue(CLOSED, access), who), api.Opened)

    assert not opens(company.nobody, AccessMode.SEND)
    assert not opens(company.alice, AccessMode.SEND)
    assert opens(company.bob, AccessMode.SEND)
    assert opens(company.bob, AccessMode.PEEK)
    assert not opens(company.bob, AccessMode.RECEIVE)


def test_what_an_administrator_creates_without_an_owner_belongs_to_all_of_them(
    company: Company,
) -> None:
    create(company, company.root, descriptor(AccessEntry(BOB, SEND)))
    assert owner_told_to(company, company.root) == ADMINISTRATORS


def test_it_belongs_to_a_user_who_is_no_administrator(company: Company) -> None:
    create(company, company.alice, descriptor(AccessEntry(BOB, SEND)))
    assert owner_told_to(company, company.alice) == ALICE


def test_only_an_administrator_gives_it_to_somebody_else(company: Company) -> None:
    bobs = descriptor(AccessEntry(BOB, SEND), owner=BOB)
    refused = create(company, company.alice, bobs)
    assert isinstance(refused, api.Failed)
    assert "left to administrators" in refused.detail
    assert isinstance(create(company, company.root, bobs), api.Queues)
    assert owner_told_to(company, company.bob) == BOB


@pytest.mark.parametrize(
    "security", [b"nonsense", encode(Descriptor(ADMINISTRATORS, b"", None))], ids=["bytes", "open"]
)
def test_rights_that_are_none_make_no_queue(company: Company, security: bytes) -> None:
    assert isinstance(create(company, company.root, security), api.Failed)
    found = company.ask(api.GetQueue(CLOSED), company.root)
    assert isinstance(found, api.Failed)


def test_the_rights_of_a_new_queue_are_told_as_such(company: Company) -> None:
    create(company, company.root, encode(queue_descriptor()))
    shown = company.ask(api.GetSecurity(CLOSED), company.root)
    assert isinstance(shown, api.Security)
    assert shown.is_default
