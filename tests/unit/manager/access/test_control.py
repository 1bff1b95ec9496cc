"""Every right on every request: with it the request is carried out, without it refused."""

from __future__ import annotations

import random
from hashlib import md5

import pytest

from openmsmq.api import messages as api
from openmsmq.directory.rows import row_of
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.config import DirectoryConfig, ManagerConfig
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.queues.totals import Totals
from openmsmq.manager.recovery import open_machine
from openmsmq.manager.turn.counters import Counters
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.access import QueueAccess
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import AccessMode, QueueProperties
from openmsmq.model.topology import UserInfo
from openmsmq.security.access.access import QUEUE, QUEUE_DEFAULT
from openmsmq.security.access.callers import (
    Scope,
    anonymous,
    certificate_caller,
    token_caller,
    unix_caller,
)
from openmsmq.security.access.descriptors import AccessEntry, Descriptor, decode, encode
from openmsmq.security.access.sids import (
    ADMINISTRATORS,
    ANONYMOUS,
    ANONYMOUS_IDENTITIES,
    EVERYONE,
    Sid,
    identities,
    unix_user,
)
from openmsmq.storage.memory import MemoryStore
from tests.strategies.messages import Draft
from tests.unit.manager.access_cases import (
    ALICE,
    BOB,
    CASES,
    COVERED,
    DENIED,
    DONE,
    ELSEWHERE,
    KINDS,
    QUEUE_NAME,
    TABLE,
    UNKNOWN,
    Case,
    Place,
    Row,
    Stage,
    only,
)
from tests.unit.manager.office import ORDERS, Office

REFUSED = "MQ_ERROR_ACCESS_DENIED"
ROOT = unix_caller("root", 0, frozenset({0}), administrator=True)
A_USER = unix_caller("alice", 70_001, frozenset(), administrator=False)
ANOTHER = unix_caller("bob", 70_002, frozenset(), administrator=False)
NOBODY = anonymous("192.0.2.1")


class Company(Office):
    """An office that knows who calls."""

    def __init__(self, **config: object) -> None:
        super().__init__(**config)
        self.root = self.driver.connect(ROOT)
        self.alice = self.driver.connect(A_USER)
        self.bob = self.driver.connect(ANOTHER)
        self.nobody = self.driver.connect(NOBODY)

    def token(self, *scopes: Scope, queues: tuple[str, ...] = ()) -> int:
        return self.driver.connect(token_caller("web", ADMINISTRATORS, frozenset(scopes), queues))

    def security(self, name: str, app: int | None = None) -> Descriptor:
        return decode(self.ok(api.GetSecurity(name), app).descriptor)

    def detail(self, request: api.AnyRequest, app: int) -> str:
        reply = self.ask(request, app)
        assert isinstance(reply, api.Failed), reply
        return reply.detail


@pytest.fixture
def company() -> Company:
    return Company()


# The table.


def test_every_request_has_a_row_for_every_kind_of_caller() -> None:
    assert {row.kind for row in TABLE} == set(api.REQUESTS)
    for row in TABLE:
        assert len(row.outcomes) == len(KINDS), row
        assert set(row.outcomes) <= {DONE, DENIED, UNKNOWN}, row


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_every_kind_of_caller_can_do_what_the_table_says_and_nothing_else(row: Row) -> None:
    company = Company(directory=DirectoryConfig(role=DirectoryRole.ORIGINAL))
    callers = {
        "nobody from elsewhere": NOBODY,
        "token to send": token_caller("s", ADMINISTRATORS, frozenset({Scope.SEND})),
        "token to receive": token_caller("r", ADMINISTRATORS, frozenset({Scope.RECEIVE})),
        "token for some queues": token_caller(
            "q", ADMINISTRATORS, frozenset({Scope.ADMIN}), (COVERED,)
        ),
        "token of an administrator": token_caller("a", ADMINISTRATORS, frozenset({Scope.ADMIN})),
        "another user": A_USER,
        "the server's own user": ROOT,
        "certificate of a user": certificate_caller(BOB),
    }
    scopes = frozenset({Scope.SEND, Scope.RECEIVE})
    victim = company.driver.connect(token_caller("victim", ADMINISTRATORS, scopes))
    stage = Stage(
        lambda request: company.ask(request, company.root),
        lambda request: company.ask(request, victim),
    )
    found = ""
    for kind in KINDS:
        app = company.driver.connect(callers[kind])
        found += stage.outcome(row, lambda request, app=app: company.ask(request, app))
    assert found == row.outcomes


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_request_is_carried_out_with_its_right_and_refused_without(case: Case) -> None:
    company = Company(directory=DirectoryConfig(role=DirectoryRole.ORIGINAL))
    place = Place(
        lambda request: company.ask(request, company.root),
        lambda request: company.ask(request, company.alice),
    )
    place.show(case)


def test_a_refusal_says_who_lacks_what_where_and_how_to_come_by_it(company: Company) -> None:
    detail = company.detail(api.OpenQueue(ORDERS, AccessMode.RECEIVE), company.alice)
    assert detail == (
        r"user alice lacks the right receive on private$\orders; who may set permissions grants it "
        r"with: openmsmq queue acl grant 'private$\orders' user:70001 receive"
    )
    detail = company.detail(api.CreateQueue(r"private$\x"), company.alice)
    assert detail.endswith("with: openmsmq acl grant user:70001 create-queue")
    detail = company.detail(api.GetBatch("q"), company.nobody)
    assert "connect with a token, a certificate, or as a user of this computer" in detail


# Handles: what they were opened for is what they are good for.

PEEKING = {
    "receive": lambda handle: api.Receive(handle),
    "find": lambda handle: api.Find(handle, message_id=bytes(20)),
    "seek": lambda handle: api.Seek(handle, "first"),
    "remove": lambda handle: api.RemoveRange(handle, 0, 9),
    "reserve": lambda handle: api.Reserve(handle, "r", 0),
    "complete": lambda handle: api.Complete(handle, "r", 9),
    "purge": lambda handle: api.Purge(handle),
    "send": lambda handle: api.Send(handle, [Draft().packet()]),
}
SENDING = {
    "peek": lambda handle: api.Receive(handle, peek=True),
    "fetch": lambda handle: api.FetchRange(handle, 0, 9),
    "fetch packets": lambda handle: api.FetchPackets(handle, 0, 9),
    "measure": lambda handle: api.Measure(handle, 0),
    "survey": lambda handle: api.Survey(handle, 0, 9),
    "cursor": lambda handle: api.CreateCursor(handle),
}


@pytest.mark.parametrize(
    ("mode", "make"),
    [(AccessMode.PEEK, make) for make in PEEKING.values()]
    + [(AccessMode.SEND, make) for make in SENDING.values()],
    ids=[*PEEKING, *SENDING],
)
def test_a_handle_is_good_for_what_it_was_opened_for(company: Company, mode, make) -> None:
    handle = company.open(ORDERS, mode, app=company.root)
    assert company.error(make(handle), company.root) == REFUSED


def test_a_right_that_is_taken_away_counts_from_the_next_opening_on(company: Company) -> None:
    company.ok(api.SetSecurity(ORDERS, only(ALICE, QueueAccess.PEEK_MESSAGE)), company.root)
    handle = company.open(ORDERS, AccessMode.PEEK, app=company.alice)
    company.ok(api.SetSecurity(ORDERS, only(ALICE, 0)), company.root)
    company.ok(api.FetchRange(handle, 0, 9), company.alice)
    assert company.error(api.OpenQueue(ORDERS, AccessMode.PEEK), company.alice) == REFUSED


# Defaults.


def test_strangers_may_send_and_know_of_queues_and_nothing_else(company: Company) -> None:
    for app in (company.alice, company.nobody):
        handle = company.open(ORDERS, AccessMode.SEND, app=app)
        company.ok(api.Send(handle, [Draft().packet()]), app)
        for mode in (AccessMode.RECEIVE, AccessMode.PEEK, AccessMode.MOVE):
            assert company.error(api.OpenQueue(ORDERS, mode), app) == REFUSED
        company.ok(api.GetStatus(), app)
        company.ok(api.GetQueue(ORDERS), app)
        for request in (
            api.CreateQueue(r"private$\x"),
            api.DeleteQueue(ORDERS),
            api.ChangeQueue(ORDERS, label="x"),
            api.SetSecurity(ORDERS, only(ALICE, QUEUE.everything)),
            # What changes nothing needs the right all the same.
            api.SetSecurity(ORDERS, QUEUE_DEFAULT),
            api.SetSecurity("", b""),
            api.TakeOwnership(ORDERS),
            api.SetOnline(online=False),
            api.OpenQueue("system$;deadletter", AccessMode.PEEK),
        ):
            assert company.error(request, app) == REFUSED, request


def test_strangers_without_a_name_send_nowhere_else(company: Company) -> None:
    for name in (ELSEWHERE, f"{ELSEWHERE},DIRECT=OS:.\\{ORDERS}", r"other\private$\orders"):
        assert company.error(api.OpenQueue(name, AccessMode.SEND), company.nobody) == REFUSED
    assert company.ok(api.ListOutgoing()).queues == [], "nothing came into being"
    company.ok(api.OpenQueue(ELSEWHERE, AccessMode.SEND), company.alice)


def test_a_refused_reader_makes_no_subqueue(company: Company) -> None:
    request = api.OpenQueue(f"{ORDERS};later", AccessMode.RECEIVE)
    assert company.error(request, company.alice) == REFUSED
    assert company.error(api.GetQueue(f"{ORDERS};later")) == "MQ_ERROR_QUEUE_NOT_FOUND"


def test_in_a_list_every_queue_here_must_take_the_messages(company: Company) -> None:
    company.ok(api.CreateQueue(QUEUE_NAME), company.root)
    names = f"DIRECT=OS:.\\{ORDERS},DIRECT=OS:.\\{QUEUE_NAME}"
    company.ok(api.OpenQueue(names, AccessMode.SEND), company.alice)
    company.ok(api.SetSecurity(QUEUE_NAME, only(ALICE, 0)), company.root)
    assert company.error(api.OpenQueue(names, AccessMode.SEND), company.alice) == REFUSED


def test_who_lists_queues_sees_those_whose_properties_are_for_him(company: Company) -> None:
    company.ok(api.SetSecurity(ORDERS, only(ALICE, 0)), company.root)
    seen = {each.path_name for each in company.ok(api.ListQueues(), company.bob).queues}
    assert seen == {r"private$\ledger"}
    every = company.ok(api.ListQueues(everything=True), company.root).queues
    assert {ORDERS, "system$;journal"} <= {each.path_name for each in every}


# Owners.


@pytest.mark.spec("MQDMPR-3.1.7.1.3.1-08")
def test_who_creates_a_queue_owns_it_and_does_everything_with_it(company: Company) -> None:
    company.ok(api.SetSecurity("", only(ALICE, 0x24)), company.root)
    company.ok(api.CreateQueue(QUEUE_NAME), company.alice)
    assert company.security(QUEUE_NAME, company.alice).owner == ALICE
    company.open(QUEUE_NAME, AccessMode.RECEIVE, app=company.alice)
    company.open(f"{QUEUE_NAME};journal", AccessMode.RECEIVE, app=company.alice)
    assert company.error(api.OpenQueue(QUEUE_NAME, AccessMode.PEEK), company.bob) == REFUSED
    company.open(QUEUE_NAME, AccessMode.RECEIVE, app=company.root)
    company.ok(api.DeleteQueue(QUEUE_NAME), company.alice)


def test_what_an_administrator_creates_belongs_to_all_administrators(company: Company) -> None:
    company.ok(api.CreateQueue(QUEUE_NAME), company.root)
    found = company.ok(api.GetSecurity(QUEUE_NAME), company.root)
    assert found.is_default
    assert found.descriptor == QUEUE_DEFAULT
    assert decode(found.descriptor).owner == ADMINISTRATORS


def test_an_administrator_who_was_locked_out_takes_the_queue_over(company: Company) -> None:
    locked = encode(Descriptor(ALICE, b"", (AccessEntry(ALICE, QUEUE.everything),)))
    company.ok(api.SetSecurity(ORDERS, locked), company.root)
    for request in (api.GetSecurity(ORDERS), api.OpenQueue(ORDERS, AccessMode.PEEK)):
        assert company.error(request, company.root) == REFUSED
    company.ok(api.TakeOwnership(ORDERS), company.root)
    assert company.security(ORDERS, company.root).owner == ADMINISTRATORS
    company.ok(api.SetSecurity(ORDERS, b""), company.root)
    company.open(ORDERS, AccessMode.PEEK, app=company.root)
    assert company.error(api.TakeOwnership(ORDERS), company.bob) == REFUSED


def test_only_administrators_give_queues_to_others(company: Company) -> None:
    company.ok(api.SetSecurity(ORDERS, only(ALICE, QUEUE.everything)), company.root)
    entries = company.security(ORDERS, company.root).entries
    for_bob = encode(Descriptor(BOB, b"", entries))
    assert company.error(api.SetSecurity(ORDERS, for_bob), company.alice) == REFUSED
    company.ok(api.SetSecurity(ORDERS, encode(Descriptor(ALICE, b"", entries))), company.alice)
    company.ok(api.SetSecurity(ORDERS, for_bob), company.root)
    assert company.security(ORDERS, company.root).owner == BOB


def test_an_owner_who_is_not_named_stays(company: Company) -> None:
    company.ok(api.SetSecurity(ORDERS, encode(Descriptor(entries=()))), company.root)
    assert company.security(ORDERS).owner == ADMINISTRATORS


# Changes.


@pytest.mark.parametrize("name", [ORDERS, ""])
def test_rights_survive_a_restart(company: Company, name: str) -> None:
    wanted = only(ALICE, 0x24)
    company.ok(api.SetSecurity(name, wanted))
    company.restart()
    assert company.ok(api.GetSecurity(name)) == api.Security(wanted, is_default=False)
    company.ok(api.SetSecurity(name, b""))
    company.restart()
    assert company.ok(api.GetSecurity(name)).is_default


@pytest.mark.parametrize("name", [ORDERS, ""])
def test_rights_that_the_disk_refuses_are_as_before(company: Company, name: str) -> None:
    before = company.ok(api.GetSecurity(name))
    refused = company.fail(api.SetSecurity(name, only(ALICE, 0x24)))
    assert refused == ["MQ_ERROR_INSUFFICIENT_RESOURCES"]
    assert company.ok(api.GetSecurity(name)) == before


@pytest.mark.parametrize(
    "descriptor", [b"nonsense", bytes(200_000), encode(Descriptor(ADMINISTRATORS))]
)
def test_what_is_no_descriptor_is_refused(company: Company, descriptor: bytes) -> None:
    error = company.error(api.SetSecurity(ORDERS, descriptor), company.root)
    assert error == "MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR"


@pytest.mark.parametrize("name", [f"{ORDERS};journal", "system$;journal"])
def test_journals_and_system_queues_have_no_rights_of_their_own(company, name: str) -> None:
    for request in (api.GetSecurity(name), api.SetSecurity(name, b""), api.TakeOwnership(name)):
        assert company.error(request, company.root) == "MQ_ERROR_PROPERTY_NOTALLOWED"


@pytest.mark.spec("MQSRM-3.1.5.1.12-09")
def test_a_descriptor_that_nobody_understands_lets_administrators_in_only() -> None:
    queue = queue_with(b"from a directory that lies")
    access = access_control()
    assert access.rights_on(queue, A_USER) == 0
    assert access.rights_on(queue, NOBODY) == 0
    assert access.rights_on(queue, ROOT) == QUEUE.everything
    assert not access.anonymous_may_write(queue)


# Scopes.


def test_a_token_for_sending_sends_and_does_nothing_else(company: Company) -> None:
    web = company.token(Scope.SEND)
    handle = company.open(ORDERS, AccessMode.SEND, app=web)
    company.ok(api.Send(handle, [Draft().packet()]), web)
    company.ok(api.OpenQueue(ELSEWHERE, AccessMode.SEND), web)
    company.ok(api.GetBatch("query"), web)
    for request in (
        api.OpenQueue(ORDERS, AccessMode.PEEK),
        api.OpenQueue(ORDERS, AccessMode.RECEIVE),
        api.CreateQueue(r"private$\x"),
        api.DeleteQueue(ORDERS),
        api.GetSecurity(ORDERS),
        api.TakeOwnership(ORDERS),
        api.TakeOwnership(),
        api.SetOnline(online=False),
    ):
        assert company.error(request, web) == REFUSED, request
    assert "its token is for something else" in company.detail(api.DeleteQueue(ORDERS), web)


def test_a_token_for_receiving_receives_and_peeks_and_does_nothing_else(company: Company) -> None:
    worker = company.token(Scope.RECEIVE)
    company.open(ORDERS, AccessMode.RECEIVE, app=worker)
    company.open(ORDERS, AccessMode.PEEK, app=worker)
    company.open("system$;deadletter", AccessMode.RECEIVE, app=worker)
    for request in (
        api.OpenQueue(ORDERS, AccessMode.SEND),
        api.OpenQueue(ELSEWHERE, AccessMode.SEND),
        api.GetBatch("query"),
        api.DeleteQueue(ORDERS),
        api.SetOnline(online=False),
    ):
        assert company.error(request, worker) == REFUSED, request


def test_a_token_for_administration_does_everything(company: Company) -> None:
    admin = company.token(Scope.ADMIN)
    company.open(ORDERS, AccessMode.SEND, app=admin)
    company.open(ORDERS, AccessMode.RECEIVE, app=admin)
    company.ok(api.CreateQueue(QUEUE_NAME), admin)
    company.ok(api.SetOnline(online=True), admin)
    company.ok(api.DeleteQueue(QUEUE_NAME), admin)


def test_a_token_for_some_queues_uses_no_others(company: Company) -> None:
    bound = company.token(Scope.SEND, Scope.RECEIVE, queues=(r"private$\ord*",))
    company.open(ORDERS, AccessMode.RECEIVE, app=bound)
    company.open(f"{ORDERS};journal", AccessMode.PEEK, app=bound)
    for request in (
        api.OpenQueue(r"private$\ledger", AccessMode.SEND),
        api.OpenQueue(r"private$\ledger", AccessMode.PEEK),
        api.OpenQueue("system$;deadletter", AccessMode.PEEK),
        api.OpenQueue(ELSEWHERE, AccessMode.SEND),
        api.GetQueue(r"private$\ledger"),
    ):
        assert company.error(request, bound) == REFUSED, request
    assert [each.path_name for each in company.ok(api.ListQueues(True), bound).queues] == [
        ORDERS,
        f"{ORDERS};journal",
    ]
    far = company.token(Scope.SEND, queues=("DIRECT=TCP:127.0.0.99*",))
    company.ok(api.OpenQueue(ELSEWHERE, AccessMode.SEND), far)
    assert company.error(api.OpenQueue(ORDERS, AccessMode.SEND), far) == REFUSED


# What messages are asked about.


def test_who_may_send_is_known_for_the_wire() -> None:
    access = access_control()
    for _ in range(2):
        assert access.anonymous_may_write(queue_with(b""))
        assert access.may_write(queue_with(b""), identities(ALICE))
    mine = queue_with(only(ALICE, QueueAccess.WRITE_MESSAGE))
    for _ in range(2):
        assert not access.anonymous_may_write(mine)
        assert access.may_write(mine, identities(ALICE))
        assert not access.may_write(mine, identities(BOB))
    barred = (
        AccessEntry(ANONYMOUS, QueueAccess.WRITE_MESSAGE, is_denied=True),
        AccessEntry(EVERYONE, QueueAccess.WRITE_MESSAGE),
    )
    signed = queue_with(encode(Descriptor(ADMINISTRATORS, b"", barred)))
    assert access.may_write(signed, identities(BOB))
    assert not access.may_write(signed, ANONYMOUS_IDENTITIES)
    assert not access.anonymous_may_write(signed)


def test_a_bounded_number_of_checks_is_kept_and_all_stay_right() -> None:
    access = access_control(checks_kept_max=3)
    for number in [*range(10), *range(10)]:
        queue = queue_with(only(unix_user(number), QueueAccess.WRITE_MESSAGE))
        assert access.may_write(queue, identities(unix_user(number)))
        assert not access.anonymous_may_write(queue)
        assert access.checks_kept_count <= 3 * 3


def access_control(**options: int) -> AccessControl:
    ledger, store, rng = Ledger(), MemoryStore(), random.Random(1)
    config = ManagerConfig(name="ALPHA")
    counters = Counters(open_machine(config, rng, store), ledger, rng)
    table = QueueTable(config, counters, ledger, store, rng, DirectoryCopy(ledger, store))
    return AccessControl(table, ledger, store, **options)


def queue_with(descriptor: bytes) -> LocalQueue:
    properties = QueueProperties(
        identifier=NIL_GUID, path_name=ORDERS, security_descriptor=descriptor
    )
    return LocalQueue(16, ORDERS, properties, MemoryStore(), Totals())


# Who it is.


def test_a_caller_is_told_who_it_is(company: Company) -> None:
    found = company.ok(api.GetCaller(), company.alice)
    assert (found.name, found.user, found.scopes) == ("user alice", ALICE, None)
    assert bytes(EVERYONE) in found.sids
    bound = company.token(Scope.SEND, queues=("a*",))
    found = company.ok(api.GetCaller(), bound)
    assert (found.name, found.scopes, found.queues) == ("token web", ["send"], ["a*"])


def test_a_certificate_is_its_users_and_of_two_nobodys() -> None:
    company = Company(directory=DirectoryConfig(role=DirectoryRole.ORIGINAL))
    manager = company.driver.manager
    assert manager.user_of(b"A") is None
    digest = md5(b"D", usedforsecurity=False).digest()
    users = [
        user(b"a", ALICE, b"A", b"B"),
        user(b"b", BOB, b"B"),
        UserInfo(
            identifier=Guid(b"d" * 16),
            security_identifier=bytes(unix_user(4)),
            certificate_digests=(digest,),
        ),
    ]
    company.ok(api.ChangeDirectory([row_of(each) for each in users]), company.root)
    assert manager.user_of(b"A") == ALICE
    assert manager.user_of(b"B") is None
    assert manager.user_of(b"C") is None
    assert manager.user_of(b"D") == unix_user(4)


def user(letter: bytes, sid: Sid, *certificates: bytes) -> UserInfo:
    return UserInfo(
        identifier=Guid(letter * 16),
        security_identifier=bytes(sid),
        certificates=certificates,
        certificate_digests=tuple(
            md5(each, usedforsecurity=False).digest() for each in certificates
        ),
    )


def test_a_public_queue_has_its_rights_in_the_directory() -> None:
    company = Company(directory=DirectoryConfig(role=DirectoryRole.ORIGINAL))
    name = r".\published"
    company.ok(api.CreateQueue(name), company.root)
    company.ok(api.SetSecurity(name, only(ALICE, QueueAccess.PEEK_MESSAGE)), company.root)
    (known,) = [
        each
        for each in company.driver.manager.directory.copy.image.queues.values()
        if each.path_name.endswith("published")
    ]
    assert known.security_descriptor == only(ALICE, QueueAccess.PEEK_MESSAGE)
    company.open(name, AccessMode.PEEK, app=company.alice)
    assert company.error(api.OpenQueue(name, AccessMode.PEEK), company.bob) == REFUSED
