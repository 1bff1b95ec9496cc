"""How format names are written into packets that name several queues. [MQMQ 2.2.20.1]"""

from __future__ import annotations

from collections.abc import Iterable

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
    DirectElement,
    DistributionListElement,
    Element,
    MultiQueueFormatHeader,
    PrivateElement,
    PublicElement,
)


def destinations_header(
    name: MultipleFormatName | DistributionListFormatName,
) -> MultiQueueFormatHeader:
    """Return the header of messages to several queues; lists stay lists in it."""
    given = name.elements if isinstance(name, MultipleFormatName) else (name,)
    return MultiQueueFormatHeader(_address_list(given))


def _address_list(names: Iterable[FormatName]) -> AddressList:
    return AddressList(tuple(map(_element, names)))


def _element(name: FormatName) -> Element:
    match name:
        case DirectFormatName():
            return DirectElement(name.wire_text)
        case PrivateFormatName():
            return PrivateElement(name.queue_manager, name.number)
        case PublicFormatName():
            return PublicElement(name.queue)
        case DistributionListFormatName():
            return DistributionListElement(name.distribution_list)
        case _:
            raise UnsupportedFormatName(f"{name} cannot be one of several destinations")
