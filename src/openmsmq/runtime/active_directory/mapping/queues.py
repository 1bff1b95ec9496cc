"""Public queues as entries below their queue manager. [MQDSSM 3.1.6.11.2, 3.1.6.1.2]"""

from __future__ import annotations

from typing import Final

from openmsmq.model.errors import IllegalPropertyValue
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.limits import JOURNAL_QUOTA_DEFAULT_KB, QUEUE_QUOTA_DEFAULT_KB
from openmsmq.model.queue import QueueKind, QueuePrivacy, QueueProperties
from openmsmq.runtime.active_directory.mapping.descriptors import (
    QUEUE_RIGHTS,
    translate_from_directory,
    translate_to_directory,
)
from openmsmq.runtime.active_directory.mapping.entries import (
    Attributes,
    Entry,
    Malformed,
    Values,
    flag_value,
    guid_values,
    number_value,
    text_value,
)
from openmsmq.runtime.active_directory.mapping.names import lower_case, queue_name

QUEUE_CLASS: Final = "mSMQQueue"

ATTRIBUTES: Final = (
    "mSMQLabelEx", "mSMQQueueType", "mSMQJournal", "mSMQQueueQuota", "mSMQQueueJournalQuota",
    "mSMQAuthenticate", "mSMQPrivacyLevel", "mSMQTransactional", "MSMQ-MulticastAddress",
    "mSMQBasePriority", "mSMQQueueNameExt", "memberOf",
)  # fmt: skip

AT_CREATION_ONLY: Final = ("mSMQTransactional", "mSMQQueueNameExt")
"""What never changes."""

_DIRECTORY_SCHEME: Final = "LDAP://"


def read_queue(entry: Entry, manager: Entry, computer: Entry) -> QueueProperties:
    """Read a public queue, the queue manager above it and the computer above that."""
    name = queue_name(entry.needed("cn").decode("utf-8", "replace"), entry.text("mSMQQueueNameExt"))
    host = computer.text("dNSHostName")
    try:
        return QueueProperties(
            identifier=entry.identifier,
            path_name=lower_case(f"{computer.text('cn')}\\{name}"),
            kind=QueueKind.PUBLIC,
            manager=manager.identifier,
            qualified_path_name=lower_case(f"{host}\\{name}") if host else "",
            label=entry.text("mSMQLabelEx"),
            service_type=entry.guid("mSMQQueueType"),
            created_time_s=entry.time_s("whenCreated"),
            modified_time_s=entry.time_s("whenChanged"),
            transactional=entry.flag("mSMQTransactional"),
            journaling=entry.flag("mSMQJournal"),
            quota_kb=entry.unsigned("mSMQQueueQuota", QUEUE_QUOTA_DEFAULT_KB),
            journal_quota_kb=entry.unsigned("mSMQQueueJournalQuota", JOURNAL_QUOTA_DEFAULT_KB),
            authentication_required=entry.flag("mSMQAuthenticate"),
            privacy=_privacy(entry),
            base_priority=entry.number("mSMQBasePriority"),
            multicast_address=entry.text("MSMQ-MulticastAddress") or None,
            security_descriptor=translate_from_directory(
                entry.needed("nTSecurityDescriptor"), QUEUE_RIGHTS
            ),
            directory_name=entry.name,
            directory_path=f"{_DIRECTORY_SCHEME}{entry.name}",
        )
    except IllegalPropertyValue as error:
        raise Malformed(f"{entry.name}: {error.detail}") from None


def _privacy(entry: Entry) -> QueuePrivacy:
    try:
        return QueuePrivacy(entry.number("mSMQPrivacyLevel", QueuePrivacy.OPTIONAL))
    except ValueError:
        raise Malformed(f"mSMQPrivacyLevel of {entry.name} is none of 0, 1 and 2") from None


def queue_attributes(queue: QueueProperties) -> Attributes:
    """Return the attributes of a queue, its name apart."""
    return {
        "mSMQLabelEx": text_value(queue.label),
        "mSMQQueueType": _service_type(queue),
        "mSMQJournal": flag_value(queue.journaling),
        "mSMQQueueQuota": number_value(queue.quota_kb),
        "mSMQQueueJournalQuota": number_value(queue.journal_quota_kb),
        "mSMQAuthenticate": flag_value(queue.authentication_required),
        "mSMQPrivacyLevel": number_value(queue.privacy),
        "mSMQTransactional": flag_value(queue.transactional),
        "MSMQ-MulticastAddress": text_value(queue.multicast_address),
        "mSMQBasePriority": number_value(queue.base_priority),
        "nTSecurityDescriptor": translate_to_directory(queue.security_descriptor, QUEUE_RIGHTS),
    }


def _service_type(queue: QueueProperties) -> Values:
    return () if queue.service_type == NIL_GUID else guid_values((queue.service_type,))
