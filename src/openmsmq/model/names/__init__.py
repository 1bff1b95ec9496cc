"""The names of queues: path names and format names, parsed and printed. [MQMQ 2.1]

`str(name)` prints what `PathName.parse` or `parse_format_name` reads; `read_name` reads either, as
programs write them. Keywords are printed in
one case, hosts and queue names keep theirs.
"""

from __future__ import annotations

from openmsmq.model.names.direct import DirectFormatName, DirectProtocol
from openmsmq.model.names.errors import (
    IllegalFormatName,
    IllegalName,
    IllegalPathName,
    UnsupportedName,
)
from openmsmq.model.names.format_names import (
    ConnectorFormatName,
    DistributionListFormatName,
    FormatName,
    MachineFormatName,
    MulticastFormatName,
    MultipleFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
)
from openmsmq.model.names.local import LocalQueueName, QueueOnComputer, SystemQueue
from openmsmq.model.names.parsing import is_format_name, parse_format_name, read_name, read_path
from openmsmq.model.names.paths import LOCAL_COMPUTER, LOCAL_COMPUTERS, PathName

__all__ = [
    "LOCAL_COMPUTER",
    "LOCAL_COMPUTERS",
    "ConnectorFormatName",
    "DirectFormatName",
    "DirectProtocol",
    "DistributionListFormatName",
    "FormatName",
    "IllegalFormatName",
    "IllegalName",
    "IllegalPathName",
    "LocalQueueName",
    "MachineFormatName",
    "MulticastFormatName",
    "MultipleFormatName",
    "PathName",
    "PrivateFormatName",
    "PublicFormatName",
    "QueueOnComputer",
    "SingleFormatName",
    "SystemQueue",
    "UnsupportedName",
    "is_format_name",
    "parse_format_name",
    "read_name",
    "read_path",
]
