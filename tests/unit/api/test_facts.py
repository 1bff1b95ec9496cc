"""What requests say of themselves, compared with what was written down here by hand."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.api.facts import Check, Facts, Need

EFFECTIVE = [
    api.Send(1, [b"packet"]),
    api.BeginBackup("/backup"),
    api.Send(1, [b""], -1),
    api.Receive(1),
    api.Receive(1, cursor=3),
    api.Seek(1, "first"),
    api.Find(1, message_id=b""),
    api.EndReceive(1, 2, True),
    api.Move(1, 2, 3),
    api.Purge(1),
    api.CreateQueue("q"),
    api.ChangeQueue("q"),
    api.DeleteQueue("q"),
    api.ChangeDirectory([]),
    api.Commit(1),
    api.Abort(1),
    api.Prepare(1),
    api.Resolve(b"", True),
    api.RemoveCertificate(bytes(16)),
    api.CloseConnection(1),
]
HARMLESS = [
    api.Receive(1, peek=True),
    api.Receive(1, transaction=4),
    api.Receive(1, lock=True),
    api.EndReceive(1, 2, False),
    api.Seek(1, "first", peek=True),
    api.Find(1, message_id=b"", peek=True),
    api.Send(1, [b""], 4),
    api.Move(1, 2, 3, transaction=4),
    api.GetStatus(),
    api.GetQueue("q"),
    api.GetNames("q"),
    api.ListQueues(),
    api.PageQueues(),
    api.OpenQueue("q", 1),
    api.CloseQueue(1),
    api.FetchRange(1, 0, 9),
    api.RemoveRange(1, 0, 9),
    api.FetchPackets(1, 0, 9),
    api.Reserve(1, "reader", 0),
    api.Measure(1, 0),
    api.Survey(1, 0, 9),
    api.GetEpochs(),
    api.Complete(1, "reader", 9),
    api.Release("q"),
    api.GetBatch("query"),
    api.ListQueries(),
    api.CommitBatch("query", 0, []),
    api.AbortBatch("query", 0),
    api.ForgetQuery("query"),
    api.SendOnce(1, b"packet", "key", b"digest"),
    api.GetVoucher("key"),
    api.CreateCursor(1),
    api.CloseCursor(1),
    api.Cancel(1),
    api.Begin(),
    api.ListTransactions(),
    api.ListOutgoing(),
    api.ReadAudit(),
    api.FindMessage(bytes(20)),
    api.ListSessions(),
    api.PageIncomingSequences(),
    api.ListConnections(),
    api.ControlOutgoing("q", "pause"),
    api.SetOnline(True),
    api.ReadDirectory(),
    api.RefreshDirectory(),
    api.FindQueues(),
    api.GetSecurity("q"),
    api.SetSecurity("q", b""),
    api.TakeOwnership("q"),
    api.GetCaller(),
    api.GetEncryptionKeys(bytes(16)),
    api.RenewKeys(),
    api.GetBackup(),
    api.GetConfiguration(),
    api.Reload(),
    api.SetLogLevel("debug"),
    api.RegisterCertificate(b"certificate"),
    api.ListCertificates(),
    api.Hello(),
]


@pytest.mark.parametrize("request_", EFFECTIVE, ids=repr)
def test_what_has_changed_something_for_good_is_not_sent_again(request_: api.AnyRequest) -> None:
    assert not request_.may_repeat


@pytest.mark.parametrize("request_", HARMLESS, ids=repr)
def test_what_only_looks_or_is_undone_may_be_sent_again(request_: api.AnyRequest) -> None:
    assert request_.may_repeat


def test_every_request_is_one_or_the_other() -> None:
    named = {type(request) for request in EFFECTIVE + HARMLESS}
    assert named == set(api.REQUESTS)


FACTS: dict[str, set[type[api.AnyRequest]]] = {
    # What changes something for others.
    "is_audited": {
        api.CreateQueue,
        api.ChangeQueue,
        api.DeleteQueue,
        api.SetSecurity,
        api.TakeOwnership,
        api.Release,
        api.Purge,
        api.Resolve,
        api.ForgetQuery,
        api.ControlOutgoing,
        api.SetOnline,
        api.ChangeDirectory,
        api.RenewKeys,
        api.BeginBackup,
        api.RegisterCertificate,
        api.RemoveCertificate,
        api.CloseConnection,
        api.Reload,
        api.SetLogLevel,
    },
    "waits": {api.Receive, api.Find, api.ReadDirectory},
    "ends_waits": {api.Cancel, api.CloseCursor, api.CloseQueue},
    "is_heavy": {
        api.Receive,
        api.Find,
        api.Seek,
        api.FetchRange,
        api.FetchPackets,
        api.ListQueues,
        api.PageQueues,
        api.ReadAudit,
        api.FindMessage,
        api.ListSessions,
        api.PageIncomingSequences,
        api.ListConnections,
    },
    "asks_directory": {api.OpenQueue, api.GetQueue, api.GetNames},
}
"""Of which requests a fact is true."""


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_is_true_of_these_requests_and_of_no_others(fact: str) -> None:
    assert {kind for kind in api.REQUESTS if getattr(kind.facts, fact)} == FACTS[fact]


def test_every_fact_is_compared() -> None:
    # What a request needs is shown for every kind of caller in `manager/access/test_control.py`.
    assert {*FACTS, "needs", "repeats"} == set(Facts.__struct_fields__)


@pytest.mark.parametrize(
    ("request_", "wanted_ms"),
    [
        (api.Receive(1, timeout_ms=None), None),
        (api.Receive(1, timeout_ms=2_500), 2_500),
        (api.Find(1, timeout_ms=1_000), 1_000),
        (api.ReadDirectory(wait_ms=9_000), 9_000),
        (api.Purge(1), None),
        (api.DeleteQueue("q"), None),
    ],
)
def test_a_request_says_how_long_it_may_take(
    request_: api.AnyRequest, wanted_ms: int | None
) -> None:
    assert request_.patience_ms == wanted_ms


def test_all_others_do_not_wait() -> None:
    others = set(api.REQUESTS) - {api.Receive, api.Find, api.ReadDirectory}
    others -= {api.Purge, api.DeleteQueue}
    for request in EFFECTIVE + HARMLESS:
        assert type(request) not in others or request.patience_ms == 0, request


@pytest.mark.parametrize("check", Check)
def test_rights_are_said_where_they_are_looked_for_and_nowhere_else(check: Check) -> None:
    with_rights = check in (Check.QUEUE, Check.MANAGER, Check.OBJECT)
    assert Need(check, int(with_rights)).check is check
    with pytest.raises(TypeError, match="rights"):
        Need(check, int(not with_rights))
