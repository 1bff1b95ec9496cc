"""What bounds the process around the core: every maximum and every wait, with its unit.

These protect the server from its clients and need no changing. What an operator may change stands
in `ServerConfig`, what a door gives to one address and to all in `PeerBounds`.
"""

from __future__ import annotations

from typing import Final

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

SLATE_BYTES: Final = (4 << 20) + (64 << 10)
"""A slate: what tasks of Spark ask for at once, and one usual message that goes beyond it."""

SLATES_OF_CONNECTION_MAX_COUNT: Final = 3
"""One is filled while the client looks at another."""

SLATES_MAX_COUNT: Final = 32
"""Slates of all connections together, 130 MB; who gets none is sent its answers."""

VITALS_LOOK_MS: Final = 1_000
"""How often is measured how late the event loop is."""

SPANS_PER_S_MAX_COUNT: Final = 1_000
"""Spans that are made in a second. Strangers can say of every message that its trace is recorded,
and the thread that exports spans takes its time from the event loop."""

SPANS_WAITING_MAX_COUNT: Final = 2_048
"""Spans that wait for the collector; further ones are dropped."""

SPANS_BATCH_MAX_COUNT: Final = 512
"""Spans in one request to the collector."""

SPANS_EXPORT_EVERY_MS: Final = 1_000
"""How long a span waits for others that go with it."""

SPAN_EXPORT_S: Final = 5.0
"""How long the collector may take for one request, with all that is tried again."""

SPAN_TEXT_MAX_CHARACTERS: Final = 512
"""The longest text in a span: names of queues come from others."""

SPANS_LOOK_S: Final = 10.0
"""How often is looked whether spans were dropped, to say so."""

SPANS_STOP_S: Final = 2.0
"""How long a stop waits for the last spans to be taken."""

CONSOLE_RESTARTS_MAX_COUNT: Final = 5
"""How often a web console that ends is started again within the time below."""

CONSOLE_RESTARTS_SPAN_S: Final = 600.0
"""After this time, an end of the console counts no more."""

CONSOLE_PAUSE_S: Final = 1.0
"""How long to wait before it is started again; twice as long after each end."""

CONSOLE_STOP_S: Final = 8.0
"""How long it has to end by itself."""

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

DIRECTORY_SERVERS_RENEW_S: Final = 12 * 3600
"""Directory servers that were searched for are searched for again after it, though they answer."""

DIRECTORY_CALL_MS: Final = 10_000
"""How long a directory server may take to answer."""

DIRECTORY_WAIT_S: Final = 60
"""How long one question waits at a directory server for the next change, before it is put anew."""

DIRECTORY_WATCH_PAUSE_MS: Final = 1_000
"""Pause after such a question was broken off, before another server is looked for."""

# What one address may take of a door, and all together.

CONNECTIONS_RESERVED_SHARE: Final = 4
"""One place in so many is kept for addresses that are known."""

PEER_BUFFERED_MAX_BYTES: Final = 64 << 20
"""What is held for one address: packets that have not come whole, and bytes it does not take."""

PEERS_BUFFERED_MAX_BYTES: Final = 256 << 20
"""The same for all addresses."""

PEERS_BUFFERED_MIN_BYTES: Final = 32 << 20
"""The same where the quota is small: no more is held for all than half of it, or this."""

STRANGERS_READ_BYTES: Final = 64 << 10
"""What is read at once from a peer that nobody has named: it may have to wait in memory."""

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

# Remote procedure calls.

RPC_UNPROVED_MS: Final = 60_000
"""After so long a silence, a connection on which nobody has proved to be anybody is closed."""

ELSEWHERE_CONNECT_S: Final = 30
"""How long it may take to reach a queue of another computer that an application opens."""

ELSEWHERE_ANSWER_S: Final = 60
"""How long another computer may say nothing while we wait for its answer, beyond the time for
which it may wait for a message."""

ELSEWHERE_QUEUES_MAX_COUNT: Final = 500
"""Queues of other computers that applications have open; each has a connection of its own."""

ELSEWHERE_QUEUES_PER_CALLER_MAX_COUNT: Final = 50
"""The same, of one user."""

RPC_KEEPALIVE_S: Final = 60
"""After so long a silence the system asks whether a client is still there: it may hold locks."""

RPC_LINGER_MS: Final = 5_000
"""How long a client has to take the last bytes of a connection that was closed."""

RPC_PORTS_MAX_COUNT: Final = 10
"""Ports that are tried for the interfaces, one after another, while they are taken."""

RPC_BUFFERED_PER_PEER_MAX_BYTES: Final = 64 << 20
"""What is held for one address: calls that are not whole, and results that it does not take."""

RPC_BUFFERED_MAX_BYTES: Final = 256 << 20
"""The same for all addresses of one port."""

RPC_PROOFS_LOOK_MS: Final = 5_000
"""How often is looked whether the accounts of open connections are as they were."""

MULTICAST_BUFFER_BYTES: Final = 16 << 20
"""What the system holds of packets of multicast that have come and were not read."""

MULTICAST_PACKETS_PER_TURN_COUNT: Final = 64
"""Packets of multicast that are read before others have their turn."""

# HTTP.

HTTP_HEAD_MAX_BYTES: Final = 32 << 10
"""The request line and the headers of a request, or the status line and those of an answer."""

HTTP_KNOWN_HEAD_MAX_BYTES: Final = 1 << 10
"""The head of a request that is remembered: the same bytes need not be read once more."""

HTTP_KNOWN_HEADS_MAX_COUNT: Final = 256
"""Those of all connections; the oldest goes."""

HTTP_BODY_MAX_BYTES: Final = (4 << 20) + (256 << 10)
"""The body of a post: the longest message, and what SRMP puts around it."""

HTTP_PIPELINED_MAX_COUNT: Final = 64
"""Requests of one connection that have no answer yet; the next one is not read before."""

HTTP_PROXIES_MAX_COUNT: Final = 8
"""Addresses of `X-Forwarded-For` that are looked at, from the last one on."""

HTTP_KNOWN_PLACES_MAX_COUNT: Final = 256
"""Hosts with paths, and paths with queues, that were read and are remembered."""

HTTP_KNOWN_PLACE_MAX_CHARACTERS: Final = 512
"""A path with its query that is remembered so; no queue needs more."""

HTTP_UNDER_WAY_MAX_COUNT: Final = 2_000
"""Requests of all connections whose bodies come, or that have no answer yet."""

HTTP_UNDER_WAY_PER_PEER_MAX_COUNT: Final = 500
"""The same, of one address."""

HTTP_BODIES_MAX_BYTES: Final = 128 << 20
"""Bodies that are held for all requests; one that is under way counts as long as it says."""

HTTP_BODIES_PER_PEER_MAX_BYTES: Final = 48 << 20
"""The same, for one address."""

HTTP_DISCARDED_MAX_BYTES: Final = 64 << 10
"""The body of a request that is refused is read over if it is no longer, to keep the connection."""

HTTP_HEAD_MS: Final = 10_000
"""How long a head may take, from its first byte on, and the first byte of a connection."""

HTTP_BODY_MS: Final = 60_000
"""How long a body may take."""

HTTP_IDLE_MS: Final = 75_000
"""How long a connection without a request is kept."""

HTTP_ANSWER_MS: Final = 60_000
"""How long a request waits for its answer before it is told that the outcome is not known."""

HTTP_LINGER_MS: Final = 2_000
"""How long a peer has to read its last answer, and to hang up."""

HTTP_BUFFERED_PER_PEER_MAX_BYTES: Final = 64 << 20
"""What is held for one address: bodies, and answers that it does not take."""

HTTP_BUFFERED_MAX_BYTES: Final = 192 << 20
"""The same for all addresses."""

HTTP_CLERK_MS: Final = 10_000
"""For so long a queue that somebody sends to stays open; then its rights are looked at again."""

HTTP_ANSWER_MAX_BYTES: Final = 64 << 10
"""The body of an answer to a post of ours; a longer one ends its connection."""

HTTP_ANSWER_KNOWN_MAX_BYTES: Final = 1 << 10
"""An answer to a post of ours that is remembered: the same bytes need not be read once more."""

HTTP_POSTS_WAITING_MAX_COUNT: Final = 20_000
"""Posts of ours that wait for a connection or an answer; a further one fails at once."""

HTTP_POSTS_WAITING_MAX_BYTES: Final = 64 << 20
"""The same, in bytes of their bodies; a single one may always wait."""

HTTP_LANES_MAX_COUNT: Final = 1_000
"""Connections of ours to others, at a time; further lanes wait."""

MULTICAST_AGAIN_S: Final = 30.0
"""How often is looked whether there can be multicast, while there cannot."""
