"""What bounds the process around the core: every maximum and every wait, with its unit.

Those that an operator may change are defaults of `ServerConfig`; the others protect the server
from its clients and need no changing.
"""

from __future__ import annotations

from typing import Final

# What an operator may change.

API_PORT: Final = 1802
"""TCP port of the application interface."""

CONNECTIONS_MAX_COUNT: Final = 1000
"""Connections of applications at a time."""

CONNECTIONS_PER_PEER_MAX_COUNT: Final = 100
"""The same from one address of another computer."""

HELLO_MS: Final = 10_000
"""A connection that has not said a valid hello by then is closed."""

STOP_MS: Final = 5_000
"""How long a stop waits for clients to take their answers."""

FAILURE_GRACE_MS: Final = 1_000
"""How long a server whose disk failed goes on telling its clients so, before it ends."""

WRITE_BUFFER_MAX_BYTES: Final = 1 << 20
"""Answers that wait for a slow client; above it no further call of that client is taken."""

CALLS_WAITING_MAX_COUNT: Final = 4096
"""Calls of one connection that wait for something to happen, mostly reads for a message."""

CHECKPOINT_DEFAULT_BYTES: Final = 16 << 20
"""Size of a journal file of the store; the store's own default."""

CHECKPOINT_MIN_BYTES: Final = 4096
"""The store's own least size of it."""

TRANSFER_CONNECTIONS_MAX_COUNT: Final = 1000
"""Connections from other queue managers at a time; those made by this one are not counted."""

TRANSFER_CONNECTIONS_PER_PEER_MAX_COUNT: Final = 100
"""The same from one address. Each of a peer's destinations may have a session of its own."""

CONNECT_MS: Final = 10_000
"""An attempt to reach another queue manager that has not led to a connection by then has failed."""

SESSION_TLS_PORT: Final = 1803
"""TCP port of sessions over TLS."""

CAPTURE_MAX_BYTES: Final = 1 << 30
"""A recording of the traffic ends when it is this long."""

# What needs no changing.

TURN_FILE_MAX_BYTES: Final = 256 << 20
"""A file of turns ends when it is this long (`--trace-turns`)."""

HELLO_MAX_BYTES: Final = 4096
"""The first frame of a connection: nobody may make us hold more before we know them."""

READ_BYTES: Final = 1 << 20
"""What is read of one connection in one turn: the more, the fewer commits under load."""

CALLS_PER_TURN_MAX_COUNT: Final = 1024
"""Calls of one connection in one turn; the others come next, after everybody else's."""

ANSWERS_PER_TURN_BYTES: Final = 4 << 20
"""What the reads of one connection may fetch in one turn, by the size of the answers before."""

READ_ANSWER_GUESS_BYTES: Final = 64 << 10
"""How large the answer of a connection's first read is taken to be."""

READ_ANSWER_MAX_BYTES: Final = 16 << 20
"""The messages in one answer, whatever was asked for; one more than fits may be on top."""

READ_ANSWER_MAX_COUNT: Final = 10_000
"""The same, in messages: many small ones must not make the others wait."""

STOP_LINGER_MS: Final = 100
"""How long a stop leaves clients the time to hang up themselves."""

PERSISTS_PER_TURN_MAX_COUNT: Final = 64
"""Batches that one turn makes durable before the sockets are looked at again."""

LIMITED_LINES_PER_S: Final = 5
"""Lines of the log in a second about one event that strangers can cause; others are counted."""

SOCKET_PATH_MAX_BYTES: Final = 107
"""Path of a Unix socket, as Linux has it."""

ACCEPT_BACKLOG_COUNT: Final = 128
"""Connections that the system keeps for us until they are accepted."""

SESSION_READ_BYTES: Final = 256 << 10
"""What is read of one session in one turn."""

SESSION_DATA_PER_TURN_BYTES: Final = 32 << 20
"""What all sessions together hand in before it is made durable, even in the middle of a turn."""

SESSION_WRITE_BUFFER_MAX_BYTES: Final = 24 << 20
"""Bytes that wait for a peer. The window keeps a fair one far below; above it a session is cut."""

SESSION_LINGER_MS: Final = 5_000
"""How long a peer has to take the last bytes of a session that was closed, and to hang up."""

TLS_REFUSED_LINGER_MS: Final = 1_000
"""How long a peer that TLS has refused has to read why, and to hang up."""

TLS_FILES_LOOK_MS: Final = 5_000
"""How often is looked whether the certificates of sessions have changed, or come to their end."""

TLS_FILE_MAX_BYTES: Final = 1 << 20
"""A file of certificates; a longer one is not read."""

TLS_PEER_FILES_MAX_COUNT: Final = 1000
"""Files in the directory of the certificates of peers."""

TLS_VOUCHED_MAX_COUNT: Final = 1000
"""Certificates of which is remembered that an authority vouches for them."""

TLS_WARN_S: Final = 14 * 24 * 3600
"""How long before its own certificate ends a queue manager begins to say so, once a day."""

RESOLVER_QUESTIONS_MAX_COUNT: Final = 8
"""Host names that are looked up at a time."""

RESOLVER_WAITING_MAX_COUNT: Final = 10_000
"""Host names that wait to be looked up; one more gets no answer but "not found"."""

RESOLVE_MS: Final = 15_000
"""A host name that is not resolved by then counts as not found."""

DATAGRAM_BUFFER_MAX_BYTES: Final = 64 << 10
"""Datagrams that the system does not take yet; further ones are dropped, as networks do."""

GARBAGE_MIN_COUNT: Final = 50_000
"""New objects before the collector looks for cycles among them; Python's own default is 700."""

DIRECTORY_CALL_MS: Final = 10_000
"""How long a directory server may take to answer."""

DIRECTORY_WAIT_S: Final = 60
"""How long one question waits at a directory server for the next change, before it is put anew."""

DIRECTORY_WATCH_PAUSE_MS: Final = 1_000
"""Pause after such a question was broken off, before another server is looked for."""

# What one address may take of a door, and all together.

HALF_OPEN_MAX_COUNT: Final = 200
"""Connections that others have made and whose handshake has not come to its end."""

HALF_OPEN_PER_PEER_MAX_COUNT: Final = 50
"""The same from one address."""

HALF_OPEN_GRACE_MS: Final = 2_000
"""How long a handshake may take before it gives way to a newer one, when there are too many."""

CONNECTIONS_RESERVED_SHARE: Final = 4
"""One place in so many is kept for addresses that are known."""

CONNECTS_PER_PEER_PER_S: Final = 20
"""Connections that one address may make in a second, in the long run."""

CONNECTS_PER_PEER_BURST_COUNT: Final = 400
"""The same at once, by one that has been quiet: a computer that starts opens all its sessions."""

CONNECTS_ALL_PER_S: Final = 100
"""The same by all addresses; those that have been quiet are let in all the same."""

CONNECTS_ALL_BURST_COUNT: Final = 400
"""The same by all addresses, at once."""

CONNECTS_QUIET_COUNT: Final = 20
"""An address that has made fewer connections than this of late is a quiet one."""

HANDSHAKE_UNFINISHED_COST_COUNT: Final = 2
"""For so many further connections one counts that ends before its handshake does."""

DATAGRAMS_PER_PEER_PER_S: Final = 20
"""Pings of one address that are looked at in a second; the others are dropped."""

DATAGRAMS_ALL_PER_S: Final = 500
"""The same of all addresses."""

PEER_BUFFERED_MAX_BYTES: Final = 64 << 20
"""What is held for one address: packets that have not come whole, and bytes it does not take."""

PEERS_BUFFERED_MAX_BYTES: Final = 256 << 20
"""The same for all addresses."""

PEERS_BUFFERED_MIN_BYTES: Final = 32 << 20
"""The same where the quota is small: no more is held for all than half of it, or this."""

STRANGERS_READ_BYTES: Final = 64 << 10
"""What is read at once from a peer that nobody has named: it may have to wait in memory."""

PEER_ADDRESSES_MAX_COUNT: Final = 4096
"""Addresses that are remembered; further ones share one place among them."""

KNOWN_PEERS_MAX_COUNT: Final = 1000
"""Addresses that count as known because this queue manager has reached them itself."""

ACCEPTS_PER_TURN_MAX_COUNT: Final = 16
"""Connections that are accepted before the sessions that are there have their turn."""

ACCEPT_PAUSE_MS: Final = 100
"""How long nobody is accepted when the system has no more sockets."""

SESSION_UNREAD_MS: Final = 60_000
"""A peer that has taken none of the bytes that wait for it for so long is cut."""

STRANGERS_TIME_MIN_PERCENT: Final = 10
"""Part of the time that messages of strangers always get, however much known peers send."""

STRANGERS_TIME_AT_ONCE_MS: Final = 20
"""Time that they get at once, after a pause or in one turn."""

STRANGERS_PAUSE_MAX_MS: Final = 1_000
"""Longest time for which a stranger has to wait before it is looked again."""

STRANGERS_WINDOW_MS: Final = 250
"""How often is looked how much of the time known peers use."""

SESSIONS_LOOK_MS: Final = 1_000
"""How often is looked for peers that do not take their bytes."""

DESCRIPTORS_SPARE_COUNT: Final = 128
"""File descriptors for everything but connections: the store, the log, outgoing sessions."""

PEER_NUMBER_STEP: Final = 2
"""Peers that connect have even numbers; those that we connect to have the others."""
