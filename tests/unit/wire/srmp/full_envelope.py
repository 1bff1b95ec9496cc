"""One envelope with every element there is, and the message that it carries."""

from __future__ import annotations

from typing import Final

from openmsmq.model.identity import Guid, SequenceId
from openmsmq.wire.headers import transaction, user
from openmsmq.wire.headers.base import TRACE, BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
    MessageProperties,
    label_bytes,
)
from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage

SENDER: Final = Guid.parse("32221eda-9376-46df-b6ed-783091123831")
CONNECTOR: Final = Guid.parse("fd74b8eb-2af7-4ac5-9405-074e315df392")
CONNECTOR_MANAGER: Final = Guid.parse("ac678228-2dd6-418b-b31f-0539ffeea853")
RECEIPTS: Final = "http://a/msmq/private$/order_queue$?SenderStream=7"
SENT_S: Final = 1_182_272_398
"""2007-06-19 16:59:58"""

TEXT: Final = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/"'
    ' xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
    "<action>MSMQ:a label</action><to>https://b:8443/msmq/private$/orders</to>"
    f"<id>uuid:26626@{SENDER}</id><rev><via>http://a/msmq/private$/answers</via></rev></path>"
    '<properties se:mustUnderstand="1"><expiresAt>20070619T170058</expiresAt>'
    "<sentAt>20070619T165958</sentAt></properties>"
    '<services se:mustUnderstand="1"><durable/>'
    "<deliveryReceiptRequest><sendTo>http://a/msmq/private$/told</sendTo></deliveryReceiptRequest>"
    "<commitmentReceiptRequest><sendTo>http://a/msmq/private$/told</sendTo>"
    "<positiveOnly/><negativeOnly/></commitmentReceiptRequest></services>"
    f'<stream se:mustUnderstand="1"><streamId>uid:{SENDER}\\4839986701558349830</streamId>'
    "<current>1</current><previous>9</previous>"
    f"<start><sendReceiptsTo>{RECEIPTS}</sendReceiptsTo></start></stream>"
    '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>5</Priority><Journal/><DeadLetter/>'
    "<Correlation>AQIDBAUGBwgJCgsMDQ4PEBESExQ=</Correlation><Trace/>"
    f"<ConnectorType>{CONNECTOR}</ConnectorType><App>36</App><BodyType>8</BodyType>"
    "<HashAlgorithm>32772</HashAlgorithm>"
    f"<Eod><First/><Last/><ConnectorId>{CONNECTOR_MANAGER}</ConnectorId></Eod>"
    f"<SourceQmGuid>{SENDER}</SourceQmGuid>"
    "<DestinationMqf>http://b/msmq/q1\nhttp://b/msmq/q2\n</DestinationMqf>"
    "<AdminMqf>http://a/msmq/q3\nhttp://a/msmq/q4\n</AdminMqf>"
    "<ResponseMqf>http://a/msmq/q5\nhttp://a/msmq/q6\n</ResponseMqf>"
    "<TTrq>20070619T170028</TTrq></Msmq>"
    "</se:Header><se:Body></se:Body></se:Envelope>"
)


def _listed(*urls: str) -> AddressList:
    return AddressList(tuple(map(DirectName, urls)))


MESSAGE: Final = UserMessage(
    UserHeader(
        SENDER,
        time_to_be_received_s=60,
        sent_time_s=SENT_S,
        message_number=26626,
        flags=user.RECOVERABLE | user.JOURNAL_ON_SUCCESS | user.JOURNAL_ON_FAILURE,
        destination=DirectName("HTTPS://b:8443/msmq/private$/orders"),
        admin_queue=DirectName("http://a/msmq/private$/told"),
        response_queue=DirectName("http://a/msmq/private$/answers"),
        connector_type=CONNECTOR,
    ),
    MessageProperties(
        body=b"body",
        label=label_bytes("a label"),
        correlation_id=bytes(range(1, 21)),
        body_type=8,
        application_tag=36,
        body_size=4,
        allocated_size=4,
        hash_algorithm=32772,
        acknowledge=POSITIVE_ARRIVAL | POSITIVE_RECEIVE | NEGATIVE_RECEIVE | NEGATIVE_ARRIVAL,
    ),
    BaseHeader(5 | TRACE, time_to_reach_queue_s=30),
    TransactionHeader(
        SequenceId.from_int(4839986701558349830),
        1,
        9,
        transaction.FIRST | transaction.LAST | transaction.FINAL_ACK,
        CONNECTOR_MANAGER,
    ),
    debug=DebugHeader(),
    multi_queue=MultiQueueFormatHeader(
        _listed("http://b/msmq/q1", "http://b/msmq/q2"),
        _listed("http://a/msmq/q3", "http://a/msmq/q4"),
        _listed("http://a/msmq/q5", "http://a/msmq/q6"),
    ),
)


def changed(old: str, new: str) -> bytes:
    """Return the text with one place changed; nothing may be there twice."""
    assert TEXT.count(old) == 1, f"{old!r} is there {TEXT.count(old)} times"
    return TEXT.replace(old, new).encode()
