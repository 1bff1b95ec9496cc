"""Which method carries out which request of an application."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from openmsmq.api import messages as api
from openmsmq.manager.reading.bulk_reads import BulkReads
from openmsmq.manager.reading.requests import ReadRequests
from openmsmq.manager.requests.access import AccessRequests
from openmsmq.manager.requests.directory import DirectoryRequests
from openmsmq.manager.requests.outgoing import OutgoingRequests
from openmsmq.manager.requests.queues import QueueRequests
from openmsmq.manager.requests.security import SecurityRequests
from openmsmq.manager.requests.sends import SendRequests
from openmsmq.manager.transactions.batches import StagedBatches
from openmsmq.manager.transactions.requests import TransactionRequests

if TYPE_CHECKING:
    from collections.abc import Callable


class Requests(NamedTuple):
    """Those who carry out requests."""

    sends: SendRequests
    reads: ReadRequests
    bulk: BulkReads
    queues: QueueRequests
    rights: AccessRequests
    operators: OutgoingRequests
    lookups: DirectoryRequests
    security: SecurityRequests
    transactions: TransactionRequests
    batches: StagedBatches


def all_handlers(of: Requests) -> dict[type, Callable[..., None]]:
    """Return the method for each type of request."""
    return {
        api.Send: of.sends.send,
        api.Receive: of.reads.receive,
        api.Find: of.reads.receive,
        api.EndReceive: of.reads.locks.end,
        api.Seek: of.reads.seek,
        api.FetchRange: of.bulk.looks.fetch_range,
        api.FetchPackets: of.bulk.looks.fetch_packets,
        api.RemoveRange: of.bulk.remove_range,
        api.Reserve: of.bulk.reserve,
        api.Measure: of.bulk.looks.measure,
        api.Survey: of.bulk.looks.survey,
        api.GetEpochs: of.bulk.looks.get_epochs,
        api.Complete: of.bulk.complete,
        api.Release: of.bulk.release,
        api.Cancel: of.reads.cancel,
        api.Purge: of.reads.purge,
        api.Move: of.reads.move,
        api.OpenQueue: of.queues.open,
        api.CloseQueue: of.queues.close,
        api.CreateCursor: of.queues.create_cursor,
        api.CloseCursor: of.queues.close_cursor,
        api.CreateQueue: of.queues.create_queue,
        api.ChangeQueue: of.queues.change_queue,
        api.DeleteQueue: of.queues.delete_queue,
        api.GetQueue: of.queues.get_queue,
        api.GetNames: of.queues.get_names,
        api.ListQueues: of.queues.list_queues,
        api.GetStatus: of.queues.get_status,
        api.GetSecurity: of.rights.get_security,
        api.SetSecurity: of.rights.set_security,
        api.TakeOwnership: of.rights.take_ownership,
        api.GetCaller: of.rights.get_caller,
        api.ListOutgoing: of.operators.list_outgoing,
        api.ControlOutgoing: of.operators.control,
        api.SetOnline: of.operators.set_online,
        api.ReadDirectory: of.lookups.read,
        api.ChangeDirectory: of.lookups.change,
        api.RefreshDirectory: of.lookups.refresh,
        api.FindQueues: of.lookups.find_queues,
        api.GetEncryptionKeys: of.security.get_encryption_keys,
        api.RenewKeys: of.security.renew_keys,
        api.RegisterCertificate: of.security.register,
        api.RemoveCertificate: of.security.remove,
        api.ListCertificates: of.security.list,
        api.Begin: of.transactions.begin,
        api.Prepare: of.transactions.prepare,
        api.Commit: of.transactions.commit,
        api.Abort: of.transactions.abort,
        api.ListTransactions: of.transactions.list_in_doubt,
        api.Resolve: of.transactions.resolve,
        api.GetBatch: of.batches.get_batch,
        api.ListQueries: of.batches.list_queries,
        api.CommitBatch: of.batches.commit_batch,
        api.AbortBatch: of.batches.abort_batch,
        api.ForgetQuery: of.batches.forget_query,
    }
