"""What each request needs: one table, in which every request of the interface has its line.

Handles are checked when they are opened, so requests that go by a handle need nothing more: a
right that is taken away later counts for whoever opens the queue next, as with MSMQ.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.api import security_messages as keys
from openmsmq.model.access import ManagerAccess, QueueAccess


class Check(Enum):
    """What is looked at before a request is carried out."""

    NOTHING = "nothing"
    """It works on what the caller itself has opened or begun."""
    OPEN = "open"
    """The rights that the access mode needs, on the queue that is opened."""
    QUEUE = "queue"
    """Rights on the queue that the request names."""
    MANAGER = "manager"
    """Rights on the queue manager."""
    OBJECT = "object"
    """Rights on the queue that the request names, or on the queue manager if it names none."""
    SECURITY = "security"
    """As `OBJECT`; which rights depends on what is to be changed."""
    KNOWN = "known"
    """The caller must have proved who it is, and its bounds must include sending."""
    OWNER = "owner"
    """The caller must have proved who it is, and what is named must be its own; those who may
    change the queue manager may use everything."""
    SELF = "self"
    """The caller must be the user whom it stands for, without bounds, and not only for a while."""


class Rule(msgspec.Struct, frozen=True):
    """What a request needs, and whether the audit log tells of it."""

    check: Check
    rights: int = 0
    is_audited: bool = False


_OWN: Final = Rule(Check.NOTHING)
_KNOWN: Final = Rule(Check.KNOWN)
_SHOW: Final = Rule(Check.MANAGER, int(ManagerAccess.GET_PROPERTIES))
_ADMINISTER: Final = Rule(Check.MANAGER, int(ManagerAccess.SET_PROPERTIES), is_audited=True)


def _queue(rights: QueueAccess, *, is_audited: bool = True) -> Rule:
    return Rule(Check.QUEUE, int(rights), is_audited)


RULES: Final[dict[type, Rule]] = {
    api.Hello: _OWN,
    # Queues.
    api.CreateQueue: Rule(Check.MANAGER, int(ManagerAccess.CREATE_QUEUE), is_audited=True),
    api.ChangeQueue: _queue(QueueAccess.SET_PROPERTIES),
    api.DeleteQueue: _queue(QueueAccess.DELETE_QUEUE),
    api.GetQueue: _queue(QueueAccess.GET_PROPERTIES, is_audited=False),
    api.ListQueues: _SHOW,
    api.GetNames: _SHOW,
    api.GetSecurity: Rule(Check.OBJECT, int(QueueAccess.GET_PERMISSIONS)),
    api.SetSecurity: Rule(Check.SECURITY, is_audited=True),
    api.TakeOwnership: Rule(Check.OBJECT, int(QueueAccess.TAKE_OWNERSHIP), is_audited=True),
    api.OpenQueue: Rule(Check.OPEN),
    api.CloseQueue: _OWN,
    api.Release: _queue(QueueAccess.RECEIVE_MESSAGE),
    # Messages, by handles.
    api.Send: _OWN,
    api.Receive: _OWN,
    api.Seek: _OWN,
    api.Find: _OWN,
    api.EndReceive: _OWN,
    api.FetchRange: _OWN,
    api.FetchPackets: _OWN,
    api.RemoveRange: _OWN,
    api.Reserve: _OWN,
    api.Measure: _OWN,
    api.Survey: _OWN,
    api.GetEpochs: _OWN,
    api.Complete: _OWN,
    api.CreateCursor: _OWN,
    api.CloseCursor: _OWN,
    api.Cancel: _OWN,
    api.Purge: Rule(Check.NOTHING, is_audited=True),
    api.Move: _OWN,
    # Transactions and batches. What is prepared outlives its connection, so it has an owner.
    api.Begin: _OWN,
    api.Prepare: Rule(Check.OWNER),
    api.Commit: _OWN,
    api.Abort: _OWN,
    api.ListTransactions: Rule(Check.OWNER),
    api.Resolve: Rule(Check.OWNER, is_audited=True),
    api.GetBatch: _KNOWN,
    api.ListQueries: Rule(Check.OWNER),
    api.CommitBatch: _KNOWN,
    api.AbortBatch: _KNOWN,
    api.ForgetQuery: Rule(Check.KNOWN, is_audited=True),
    # The queue manager.
    api.ListOutgoing: _SHOW,
    api.ControlOutgoing: _ADMINISTER,
    api.SetOnline: _ADMINISTER,
    api.ReadDirectory: _SHOW,
    api.ChangeDirectory: _ADMINISTER,
    api.RefreshDirectory: Rule(Check.MANAGER, int(ManagerAccess.SET_PROPERTIES)),
    api.FindQueues: _SHOW,
    api.GetStatus: _SHOW,
    api.GetCaller: _OWN,
    # Keys and certificates.
    keys.GetEncryptionKeys: _SHOW,
    keys.RenewKeys: _ADMINISTER,
    keys.RegisterCertificate: Rule(Check.SELF, is_audited=True),
    keys.RemoveCertificate: Rule(Check.SELF, is_audited=True),
    keys.ListCertificates: _KNOWN,
}
"""What every request needs."""

AUDITED: Final = frozenset(kind for kind, rule in RULES.items() if rule.is_audited)
"""Requests that change something for others, or for good."""
