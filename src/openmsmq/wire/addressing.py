"""How format names are written into packets that name several queues. [MQMQ 2.2.20.1]"""

from __future__ import annotations

from openmsmq.model.errors import UnsupportedFormatName
from openmsmq.model.names import (
    DirectFormatName,
    DistributionListFormatName,
    FormatName,
    MultipleFormatName,
    PrivateFormatName,
    PublicFormatName,
)
from openmsmq.wire.headers.multi_queue import (
    AddressList,
    DistributionListName,
    Element,
    MultiQueueFormatHeader,
)
from openmsmq.wire.headers.queue_names import DirectName, PrivateName, PublicName


def destinations_header(
    name: MultipleFormatName | DistributionListFormatName,
) -> MultiQueueFormatHeader:
    """Return the header of messages to several queues; lists stay lists in it."""
    given = name.elements if isinstance(name, MultipleFormatName) else (name,)
    return MultiQueueFormatHeader(AddressList(tuple(map(_element, given))))


def _element(name: FormatName) -> Element:
    match name:
        case DirectFormatName():
            return DirectName(name.wire_text)
        case PrivateFormatName():
            return PrivateName(name.queue_manager, name.number)
        case PublicFormatName():
            return PublicName(name.queue)
        case DistributionListFormatName():
            return DistributionListName(name.distribution_list)
        case _:
            raise UnsupportedFormatName(f"{name} cannot be one of several destinations")
