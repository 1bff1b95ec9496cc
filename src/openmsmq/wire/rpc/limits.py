"""What remote procedure calls are bounded by, with the source of each bound beside it."""

from __future__ import annotations

from typing import Final

# Remote procedure calls.

RPC_PORT: Final = 2_103
"""TCP port of the interfaces; 11 more while it is taken. [MQMP 2.1, MQRR 2.1]"""

RPC_FRAGMENT_MAX_BYTES: Final = 5_840
"""A fragment of a call or of its results, header included. [RPCE 3.3.1.5.5]"""

RPC_FRAGMENT_MIN_BYTES: Final = 2_048
"""What both sides can take at least, whatever they say. [RPCE 3.3.1.5.5]"""

RPC_BIND_MAX_BYTES: Final = 16_384
"""A fragment that carries a proof of who somebody is: tickets of Kerberos are long. [ours]"""

RPC_REQUEST_MAX_BYTES: Final = 65_536
"""What is kept of one call, all fragments together; none of ours needs as much. [ours]"""

RPC_CALL_MAX_BYTES: Final = 4_194_304
"""How long one call may be, with what is not kept; a longer one ends its connection. [ours]"""

RPC_CALLS_MAX_COUNT: Final = 64
"""Calls of one connection that are under way; further ones are told to come later. [ours]"""

RPC_CONTEXTS_MAX_COUNT: Final = 64
"""Presentation contexts of one connection, and as many security contexts. [ours]"""

RPC_AUTH_LEGS_MAX_COUNT: Final = 10
"""Tokens that one authentication may need. [ours]"""

RPC_BINDS_MAX_COUNT: Final = 1_000
"""How often one connection may bind, alter its contexts or show a token. [ours]"""

RPC_HELD_ANSWERS_MAX_BYTES: Final = 8_388_608
"""Results of one connection that wait for those of earlier calls; more overtake them. [ours]"""

RPC_RESULTS_MAX_BYTES: Final = 16_777_216
"""Results that a server we call has begun to send on one connection, all calls together. [ours]"""

# Remote readers.

REMOTE_HEADERS_MAX_BYTES: Final = 4_096
"""What may stand behind a message for a remote reader: addresses and names. [MQRR 2.2.5]"""

REMOTE_QUEUES_MAX_COUNT: Final = 512
"""Queues that a remote reader may have open at once, and cursors on each of them. [ours]"""

REMOTE_RECEIVES_MAX_COUNT: Final = 1_024
"""Messages that a remote reader may wait for, or have and not have acknowledged. [ours]"""

ELSEWHERE_READS_MAX_COUNT: Final = 60
"""Reads of one queue of another computer that wait, or have a message locked. [ours]"""

RPC_READS_PER_TURN_MAX_COUNT: Final = 4
"""Reads of one remote caller in one turn: all that they bring is in memory at once. [ours]"""

REMOTE_RECEIVE_MS: Final = 300_000
"""After so long a message that a remote reader has not taken is there again. [MQRR 3.1.2.2 note]"""
