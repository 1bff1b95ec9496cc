"""The maxima and times of multicast, those of its profile and our own. [MC-MQSRM 2.1.3.1]

A line below a number is its page in the reference, as in `openmsmq.model.limits`.
"""

from __future__ import annotations

from typing import Final

# Multicast.

PGM_PAYLOAD_MAX_BYTES: Final = 65_536
"""A message as it travels by multicast, envelope included. [MQSRM 2.1.3.1]"""

PGM_PACKET_MAX_BYTES: Final = 1_476
"""A packet of PGM behind the header of IP, so that no network has to cut it. [ours]"""

PGM_RATE_BYTES_PER_S: Final = 70_000
"""What a source sends, headers and repairs included (`TXW_MAX_RTE`). [MQSRM 2.1.3.1]"""

PGM_BURST_MS: Final = 40
"""How much of its rate a source may send at once, as a time. [MQSRM 2.1.3.1]"""

PGM_WINDOW_S: Final = 300
"""How long a source can repair what it has sent (`TXW_SECS`). [MQSRM 2.1.3.1]"""

PGM_WINDOW_ADVANCE_S: Final = 45
"""How often its window moves on (`TXW_ADV_IVL`). [MQSRM 2.1.3.1]"""

PGM_WINDOW_MAX_BYTES: Final = 67_108_864
"""What a source keeps for repairs; at a higher rate that is less than the time. [ours]"""

PGM_BACKLOG_MAX_BYTES: Final = 1_048_576
"""What a source has taken over and not yet sent. [ours]"""

PGM_SPM_AMBIENT_MS: Final = 500
"""A source that sends says where it stands this often. [MQSRM 2.1.3.1]"""

PGM_SPM_AMBIENT_COUNT: Final = 50
"""It does so after so many packets, if that is sooner. [MQSRM 2.1.3.1]"""

PGM_HEARTBEAT_MIN_MS: Final = 1_000
"""A source that is silent says so first after this (`IHB_MIN`). [MQSRM 2.1.3.1]"""

PGM_HEARTBEAT_MAX_MS: Final = 15_000
"""And in the end this often (`IHB_MAX`). [MQSRM 2.1.3.1]"""

PGM_NAK_BACK_OFF_MIN_MS: Final = 10
"""Whoever misses a packet waits at least so long for others to ask. [MQSRM 2.1.3.1]"""

PGM_NAK_BACK_OFF_MAX_MS: Final = 50
"""And at most so long (`NAK_RB_IVL`). [MQSRM 2.1.3.1]"""

PGM_NAK_REPEAT_MS: Final = 750
"""What nobody confirms is asked for again (`NAK_RPT_IVL`). [MQSRM 2.1.3.1]"""

PGM_NAK_DATA_MS: Final = 2_000
"""So is what was confirmed and does not come (`NAK_RDATA_IVL`). [MQSRM 2.1.3.1]"""

PGM_NAK_RETRY_MAX_COUNT: Final = 10
"""How often each of these happens before a packet is lost. [MQSRM 2.1.3.1]"""

PGM_REPAIR_DELAY_MS: Final = 60
"""How long a source collects questions about its newest packet. [MQSRM 2.1.3.1]"""

PGM_NAKS_PER_S: Final = 50
"""Packets by which a receiver asks one source for repairs; each has up to 63 numbers. [ours]"""

PGM_NAKS_OF_ALL_PER_S: Final = 400
"""The same for all sources together: eight of them that miss as much as can be asked for. [ours]"""

PGM_GAPS_PER_ADDRESS_PER_S: Final = 4_096
"""Packets that turn out to be missing of the sources of one address; more could not be asked for.
[ours]"""

PGM_GAPS_PER_S: Final = 32_768
"""Those of all sources: each costs time, and a short packet can speak of many. [ours]"""

PGM_REPAIRS_MAX_COUNT: Final = 4_096
"""Repairs that a source has promised and not yet sent. [ours]"""

PGM_SPAN_MAX_COUNT: Final = 16_384
"""How far the packets of a source may run ahead of what it misses. [ours]"""

PGM_SOURCE_MAX_BYTES: Final = 8_388_608
"""Packets of one source that wait for others that are missing. [ours]"""

PGM_SOURCES_MAX_BYTES: Final = 67_108_864
"""Those of all sources. [ours]"""

PGM_SOURCES_MAX_COUNT: Final = 256
"""Sources that a receiver follows at a time. [ours]"""

PGM_SOURCES_PER_ADDRESS_MAX_COUNT: Final = 64
"""Those of them with one address: a further one takes the place of the quietest. [ours]"""

PGM_SOURCE_SILENT_S: Final = 60
"""A source that was silent for so long makes room for others: four heartbeats. [ours]"""

PGM_SOURCE_RATE_BYTES_PER_S: Final = 67_108_864
"""What is read from one source; the rest is as if it were lost on the way. [ours]"""

MULTICAST_SOURCES_MAX_COUNT: Final = 64
"""Multicast addresses that a queue manager sends to at a time. [ours]"""

MULTICAST_GROUPS_MAX_COUNT: Final = 64
"""Multicast addresses that the queues of a queue manager may have. [ours]"""
