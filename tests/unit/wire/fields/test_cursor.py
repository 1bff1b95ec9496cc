"""A value that does not fit its field is refused by name, also outside of packets."""

from __future__ import annotations

import pytest

from openmsmq.model.identity import NIL_GUID, MessageId, SequenceId
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.notifications import Command, Property, Update
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, PingPacket
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.headers.security import ProviderInfo
from openmsmq.wire.keys import RsaPublicKey

TOO_LARGE = 1 << 32
SEQUENCE = SequenceId(1, 2)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (PingPacket(NIL_GUID, TOO_LARGE), "Ping"),
        (PingPacket(NIL_GUID, -1), "Ping"),
        (DirectoryQuery(NIL_GUID, NIL_GUID, NIL_GUID, version=256), "DirectoryQuery"),
        (DirectoryAnswer(NIL_GUID, (NIL_GUID,), network_mask=TOO_LARGE), "DirectoryAnswer"),
        (OrderAck.up_to(SEQUENCE, TOO_LARGE), "OrderAck"),
        (FinalAck(SEQUENCE, 2, 1, MessageId(NIL_GUID, TOO_LARGE)), "FinalAck"),
        (ProviderInfo(TOO_LARGE, "name"), "ProviderInfo"),
        (RsaPublicKey(512, TOO_LARGE, 3), "PUBLICKEYBLOB"),
        (RsaPublicKey(0, 3, 0), "PUBLICKEYBLOB"),
        (RsaPublicKey(-8, 3, 0), "PUBLICKEYBLOB"),
        (
            Update(Command.CHANGE, NIL_GUID, properties=(Property(TOO_LARGE, 1),)),
            "ChangeNotification",
        ),
    ],
    ids=str,
)
def test_a_value_that_fits_no_field_is_refused(value, where):
    with pytest.raises(EncodeError) as refusal:
        value.encode()
    assert refusal.value.where == where
