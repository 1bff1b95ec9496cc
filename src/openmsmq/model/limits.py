"""Every maximum and every default duration, with its unit in its name and its source beside it.

A line below each constant says what it bounds; the bracket names the source, and `[ours]` marks
what no specification gives. `docs/reference/limits.md` is generated from this file: a comment at
the left margin begins a group there.
"""

from __future__ import annotations

from typing import Final

INFINITE_S: Final = 0xFFFFFFFF
"""A lifetime that never ends. [MQMQ 2.2.19.1]"""

UNLIMITED_KB: Final = 0xFFFFFFFF
"""A quota that is never reached. [MQDMPR 3.1.7.1.33]"""

# Messages.

PACKET_MAX_BYTES: Final = 4_194_304
"""A whole packet, headers included: body, extension and names share it. [MQMQ 2.2.19.1]"""

LABEL_MAX_CHARACTERS: Final = 249
"""Label of a message, in UTF-16 units, without the terminating zero. [MQMQ 2.2.19.3]"""

IDENTIFIER_BYTES: Final = 20
"""A message identifier or a correlation identifier, exactly. [MQMQ 2.2.8]"""

PRIORITY_MAX_LEVEL: Final = 7
"""The most urgent priority of a message; 0 is the least urgent. [MQDMPR 3.1.1.12]"""

PRIORITY_DEFAULT_LEVEL: Final = 3
"""Priority of a message that says nothing else. [MQDMPR 3.1.1.12]"""

REACH_QUEUE_DEFAULT_S: Final = 345_600
"""How long a message may travel: four days (`LongLiveTime`). [MQDMPR 3.1.1.12]"""

HOP_MAX_COUNT: Final = 29
"""How often a message may be passed on before it is refused. [MQMQ 2.2.19.2]"""

CLOCK_SKEW_MAX_S: Final = 300
"""How far another clock may be off before a received message counts as expired. [ours]"""

# Queues.

FORMAT_NAME_MAX_CHARACTERS: Final = 1024
"""A format name handed to an application. [MQMP 2.2.3.2]"""

QUEUE_NAME_MAX_CHARACTERS: Final = 124
"""The name of a queue without its computer. [MQMQ 2.1.1]"""

QUEUE_LABEL_MAX_CHARACTERS: Final = 124
"""Label of a queue, in UTF-16 units. [MQMQ 2.3.1.8]"""

SUBQUEUE_NAME_MAX_CHARACTERS: Final = 32
"""The name of a subqueue; readers on other computers see 31 of them. [MQMQ 2.1.1, MQRR 2.2.5.3]"""

COMPUTER_NAME_MAX_CHARACTERS: Final = 256
"""The name of a computer in a path name. [MQMQ 2.1.1]"""

DOMAIN_NAME_MAX_CHARACTERS: Final = 255
"""The domain of a distribution list. [MQMQ 2.1.5]"""

FORMAT_NAME_MAX_COUNT: Final = 1024
"""Elements of a multiple-element format name, and names in each list of a packet. [ours]"""

PRIVATE_QUEUE_MAX_NUMBER: Final = 0xFFFFFFFF
"""The number of a private queue on its queue manager. [MQMQ 2.2.8]"""

BASE_PRIORITY_MIN_LEVEL: Final = -32_768
"""Lowest base priority of a public queue; private queues have 0. [MQMQ 2.3.1.6]"""

BASE_PRIORITY_MAX_LEVEL: Final = 32_767
"""Highest base priority of a public queue. [MQMQ 2.3.1.6]"""

QUEUE_QUOTA_DEFAULT_KB: Final = UNLIMITED_KB
"""Room for the messages of one queue. [MQDMPR 3.1.7.1.33]"""

JOURNAL_QUOTA_DEFAULT_KB: Final = UNLIMITED_KB
"""Room for one journal, of a queue or of the queue manager. [MQDMPR 3.1.1.1, 3.1.7.1.33]"""

MANAGER_QUOTA_DEFAULT_KB: Final = 8 * 1024 * 1024
"""Room for all queues of a queue manager: 8 GiB, as current Windows. [MQMQ 2.3.1.5 note]"""

PROPERTIES_MAX_COUNT: Final = 128
"""Properties in one call. [MQMQ 2.4]"""

QUEUE_PAGE_MAX_COUNT: Final = 1_000
"""Queues that one page of a list may have. [ours]"""

QUEUE_PAGE_DEFAULT_COUNT: Final = 100
"""Queues that a page has if nobody says how many. [ours]"""

SEQUENCE_PAGE_MAX_COUNT: Final = 500
"""Incoming sequences that one page of a list may have. [ours]"""

SEQUENCE_PAGE_DEFAULT_COUNT: Final = 100
"""Incoming sequences that a page has if nobody says how many. [ours]"""

SEQUENCES_LOOKED_AT_MAX_COUNT: Final = 2_000
"""Incoming sequences that are looked at for one page of those that fit. [ours]"""

QUEUE_FILTER_MAX_CHARACTERS: Final = 1_024
"""What the names of listed queues are compared with. [ours]"""

# Ports.

MSMQ_PORT: Final = 1801
"""TCP port of sessions and UDP port of discovery (`MsmqIpPort`). [MQQB 2.1, MQSD 2.1]"""

PORT_MAX_NUMBER: Final = 0xFFFF
"""The highest port of an address. [MQMQ 2.1.6]"""

PING_PORT: Final = 3527
"""UDP port of the ping (`MsmqIpPingPort`). [MQQB 2.1.2]"""

# Sessions.

SESSION_HANDSHAKE_MS: Final = 60_000
"""A session not open by then is closed; twice the round trip delay adds. [MQQB 3.1.2.1 note]"""

SESSION_IDLE_MS: Final = 300_000
"""An idle session is closed after it (`CleanupInterval`). [MQQB 3.1.2.2 note]"""

RETRY_CONNECT_MS: Final = 5_000
"""Pause before the next attempt to connect (`TryConnectInterval`). [MQQB 3.1.2.3 note]"""

ROUND_TRIP_DELAY_MS: Final = 0
"""Added to several timeouts on slow networks (`RoundTripDelay`). [MQQB 3.1.2.1 note]"""

ACK_WAIT_MS: Final = 20_000
"""No session acknowledgment for this long closes the session. [MQQB 3.1.3.2 note]"""

ACK_WAIT_DIRECT_FACTOR: Final = 2
"""Sessions of direct names wait longer (`QosCleanupIntervalMultiplier`). [MQQB 3.1.2.4 note]"""

RECOVERABLE_ACK_SEND_MIN_MS: Final = 500
"""Shortest delay of an acknowledgment for a recoverable message. [MQQB 2.2.2.1]"""

RECOVERABLE_ACK_SEND_MAX_MS: Final = 120_000
"""Longest delay of an acknowledgment for a recoverable message. [MQQB 2.2.2.1]"""

RECOVERABLE_ACK_SEND_FACTOR: Final = 8
"""That delay as a multiple of the measured round trip. [MQQB 3.1.5.3.2]"""

WINDOW_MAX_COUNT: Final = 512
"""Messages sent but not acknowledged in a session (`MaxUnackedPacket`); Windows says 64, and the
smaller window of both sides counts. More of them share one sync of the receiver's disk. [ours]"""

WINDOW_RECOVERY_S: Final = 30
"""A window that the peer has closed doubles after each such pause. [MQMQ 2.2.20.4 note]"""

RECOVERABLE_ACK_MAX_COUNT: Final = 32
"""Recoverable messages that one session acknowledgment can cover. [MQMQ 2.2.20.4]"""

INCOMING_SESSIONS_MAX_COUNT: Final = 0xFFFFFFFF
"""Sessions accepted at the same time (`MaxInSessions`). [MQQB 2.2.1 note]"""

TURNED_AWAY_MAX_COUNT: Final = 64
"""Callers beyond that who are told so at the same time; further ones are cut. [ours]"""

PING_RESPONSE_MS: Final = 1_000
"""A ping without an answer by then has failed. [MQQB 3.1.2.9]"""

OUTGOING_QUEUES_MAX_COUNT: Final = 10_000
"""Queues of other computers for which messages wait here. [ours]"""

LINKS_MAX_COUNT: Final = 10_000
"""Other computers that messages go to at a time. [ours]"""

INCOMING_SEQUENCES_CACHED_COUNT: Final = 10_000
"""Senders' sequences kept at hand; the others are read from the disk when they go on. [ours]"""

INCOMING_SEQUENCES_MAX_COUNT: Final = 100_000
"""Senders' sequences that are remembered altogether. [ours]"""

INCOMING_SEQUENCES_PER_ADDRESS_MAX_COUNT: Final = 1_000
"""The same, of senders at one address that neither configuration nor directory knows. [ours]"""

INCOMING_SEQUENCE_BYTES: Final = 512
"""What one of them takes and what finds it again: all take an eighth of the quota. [ours]"""

INCOMING_SEQUENCE_UNUSED_S: Final = 86_400
"""After so long without a message, a sequence gives way where its address has no room. [ours]"""

INCOMING_SEQUENCE_KEPT_S: Final = 90 * 86_400
"""After so long without a message, a sequence is forgotten: none is on its way so long. [ours]"""

FORMER_WAY_S: Final = 30 * 86_400
"""So long somebody who was a way by the directory still brings messages of others. [ours]"""

FORMER_WAYS_MAX_COUNT: Final = 1_000
"""So many of these are remembered. [ours]"""

DOUBTED_STRANGERS_MAX_COUNT: Final = 4_096
"""Strangers who brought a message in another's name, so that the directory was asked. [ours]"""

DOUBTED_STRANGER_S: Final = 60
"""So long the answer holds for whatever else such a stranger brings. [ours]"""

PEER_NAMES_MAX_COUNT: Final = 1_000
"""Names in the mouth of one peer of which it is remembered what they are worth. [ours]"""

HOST_ASKED_MS: Final = 60_000
"""Pause before the address of a host is asked for again that a peer may be. [ours]"""

SEQUENCES_LOOKED_THROUGH_MS: Final = 3_600_000
"""How often sequences that nobody uses are looked for. [ours]"""

PEER_SILENCE_S: Final = 3_600
"""How long an identifier must be silent at an address before it may come from another. [ours]"""

# Transactional sequences.

RESEND_FIRST_S: Final = 30
"""Pause before resends 1 to 3 (`SeqResend13Time`). [MQQB 3.1.1.3 note]"""

RESEND_SECOND_S: Final = 300
"""Pause before resends 4 to 6 (`SeqResend46Time`). [MQQB 3.1.1.3 note]"""

RESEND_THIRD_S: Final = 1_800
"""Pause before resends 7 to 9 (`SeqResend79Time`). [MQQB 3.1.1.3 note]"""

RESEND_LAST_S: Final = 21_600
"""Pause before every later resend (`SeqResend10Time`). [MQQB 3.1.1.3 note]"""

RESEND_STEP_COUNT: Final = 3
"""Resends with the same pause, before the next longer one. [MQQB 3.1.1.3 note]"""

ORDER_ACK_SEND_MS: Final = 500
"""Pause between a transactional message and its order acknowledgment. [MQQB 3.1.3.2]"""

ORDER_ACK_MAX_DELAY_S: Final = 10
"""Longest delay of an order acknowledgment under load (`SeqMaxAckDelay`). [MQQB 3.1.3.2 note]"""

FINAL_ACK_GRACE_S: Final = 21_600
"""How long after its lifetime a message is kept for a late final acknowledgment. [ours]"""

# Duplicates.

DUPLICATE_FILTER_MAX_COUNT: Final = 100_000
"""Message identifiers remembered (`RemoveDuplicateSize`), more than Windows has. [ours]"""

DUPLICATE_FILTER_MS: Final = 1_800_000
"""How long each is remembered (`RemoveDuplicateCleanup`). [MQQB 3.1.2.8 note]"""

# Security caches.

KEY_CACHE_MS: Final = 600_000
"""Life of a cached symmetric key. [MQQB 3.1.3.1]"""

KEY_CACHE_MARGIN_S: Final = 60
"""Added when a cache clean-up is planned for its oldest entry. [MQQB 3.1.6.10-3.1.6.13]"""

RECEIVE_KEY_CACHE_MAX_COUNT: Final = 127
"""Symmetric keys remembered for receiving. [MQQB 3.1.3.1]"""

SEND_KEY_CACHE_MAX_COUNT: Final = 53
"""Symmetric keys remembered for sending. [MQQB 3.1.3.1]"""

# Directory, routing and discovery.

DIRECTORY_PROBE_S: Final = 60
"""Pause between attempts to reach an absent directory. [MQDMPR 3.1.2.5]"""

LINK_COST_MIN_UNITS: Final = 1
"""Cheapest routing link. [MQDMPR 3.1.1.8]"""

LINK_COST_MAX_UNITS: Final = 999_999
"""Dearest routing link. [MQDMPR 3.1.1.8]"""

DISCOVERY_ANSWER_S: Final = 15
"""A directory server that has not answered by then is not there. [MQSD 3.1.2.1]"""

CONNECTED_NETWORKS_MAX_COUNT: Final = 32
"""Networks in one discovery answer. [MQSD 2.2.3]"""

CERTIFICATE_DIGEST_BYTES: Final = 16
"""The MD5 digest by which the directory knows a user's certificate. [MQDMPR 3.1.1.15]"""

INITIALIZATION_RETRY_S: Final = 120
"""Pause before a queue manager that could not start tries again. [MQDMPR 3.1.1.1]"""

# What is held and sent on the word of others.

QUOTA_PARTS_COUNT: Final = 64
"""Parts into which the quota of a queue manager is divided for the shares below. [ours]"""

STRANGERS_QUOTA_PARTS_COUNT: Final = 48
"""Parts of the quota, and of the memory for express messages, up to which messages of strangers are
taken; the rest is for applications and known peers. [ours]"""

STRANGER_QUOTA_PARTS_COUNT: Final = 24
"""Parts of the quota for the messages of one stranger, by address. [ours]"""

REPORTS_QUOTA_PARTS_COUNT: Final = 8
"""Parts of the quota for all acknowledgments and reports that wait to leave. [ours]"""

REPORT_QUEUE_QUOTA_PARTS_COUNT: Final = 1
"""Parts of the quota up to which an outgoing queue takes an acknowledgment or report. [ours]"""

FINAL_ACKS_QUOTA_PARTS_COUNT: Final = 56
"""Parts of the quota up to which final acknowledgments to those wait that nobody knows. Nobody asks
for one again, so they have more than messages of strangers can fill. [ours]"""

REPORT_LIFETIME_S: Final = 345_600
"""How long an administration acknowledgment or trace report may wait to leave: four days. [ours]"""

FINAL_ACK_LIFETIME_S: Final = 30 * 24 * 3600
"""How long a final acknowledgment may wait to leave. [ours]"""

REPORTS_PER_STRANGER_PER_S: Final = 100
"""Reports in a second that a stranger may cause to others than himself. [ours]"""

REPORTS_PER_STRANGER_AT_ONCE_COUNT: Final = 1_000
"""The same at once, after a pause. [ours]"""

REPORT_BYTES_PER_STRANGER_PER_S: Final = 128 * 1024
"""Bytes of such reports in a second. [ours]"""

REPORT_BYTES_PER_STRANGER_AT_ONCE_BYTES: Final = 1024 * 1024
"""The same at once, after a pause. [ours]"""

REPORTS_PAUSE_MS: Final = 250
"""How long no report is made for a stranger who has asked for one too many. [ours]"""

STRANGERS_LOOKED_THROUGH_EVERY_MS: Final = 250
"""How long nobody looks again whom to forget while all are remembered: it is dear. [ours]"""

REPORT_BODY_MAX_BYTES: Final = 4 * 1024
"""The body in a report that a stranger causes to others; a longer one is left out. [ours]"""

STRANGERS_REMEMBERED_MAX_COUNT: Final = 4_096
"""Addresses of strangers whose shares are counted; further ones share one. [ours]"""

OUTGOING_QUEUES_FOR_OTHERS_MAX_COUNT: Final = 5_000
"""Outgoing queues that no application has opened: for reports and what passes through. [ours]"""

OUTGOING_QUEUES_FOR_STRANGERS_MAX_COUNT: Final = 2_000
"""Those of them that strangers caused, or nobody who is known. [ours]"""

OUTGOING_QUEUES_PER_STRANGER_MAX_COUNT: Final = 100
"""Those of them that one stranger caused. [ours]"""

OUTGOING_IDLE_FOR_OTHERS_MS: Final = 60_000
"""How often empty ones among them are looked for and forgotten. [ours]"""

EXPRESS_MEMORY_DEFAULT_KB: Final = 256 * 1024
"""Memory for express messages, which are never on the disk. [ours]"""

EXPRESS_OVERHEAD_BYTES: Final = 400
"""What an express message takes in memory beside its own bytes, about. [ours]"""

# Applications.

QUEUES_MAX_COUNT: Final = 100_000
"""Queues of one queue manager, journals and subqueues included. [ours]"""

OPEN_QUEUES_MAX_COUNT: Final = 10_000
"""Queues one connection has open at a time, and cursors on them. [ours]"""

WAITING_READS_MAX_COUNT: Final = 100_000
"""Reads that wait for a message at a time. [ours]"""

HANDLES_SHOWN_MAX_COUNT: Final = 100
"""Open queues that are listed of a connection, and outgoing ones of a session. [ours]"""

TRANSACTIONS_MAX_COUNT: Final = 10_000
"""Transactions under way at a time. [ours]"""

OWNER_SHARE_FACTOR: Final = 2
"""What others leave of transactions, staged bytes, queries and outgoing queues, divided by it, is
for one owner, so that there is always room for another; administrators may have all. [ours]"""

XID_PART_MAX_CHARACTERS: Final = 64
"""Each of the two parts of what a coordinator calls a transaction, as PEP 249 has it. [ours]"""

TRANSACTION_MAX_COUNT: Final = 100_000
"""Messages in one transaction, sent and received. [ours]"""

TRANSACTION_MAX_BYTES: Final = 256 * 1024 * 1024
"""Bytes of the messages that one transaction sends. [ours]"""

SEND_MAX_COUNT: Final = 32_768
"""Messages that an application sends at once. [ours]"""

NAMES_PER_SEND_MAX_COUNT: Final = 32_768
"""Names in the lists of queues of the messages that are sent at once: 32 full lists. [ours]"""

PROTECTED_PER_SEND_MAX_COUNT: Final = 1_024
"""Signed or encrypted messages that are sent at once to queues of this computer. [ours]"""

READER_NAME_MAX_BYTES: Final = 200
"""Bytes in the name of a reader that reserves messages. [ours]"""

SURVEY_PARTS_MAX_COUNT: Final = 1024
"""Parts of a range about which a reader by arrival number asks at once. [ours]"""

EPOCHS_MAX_COUNT: Final = 256
"""Starts of a queue manager that its store remembers. [ours]"""

READERS_MAX_COUNT: Final = 16
"""Readers by arrival number that a queue remembers; the one not used for longest goes. [ours]"""

READER_QUIET_S: Final = 300
"""After so long without a sign of its query, another may follow under a reader's name. [ours]"""

RANGE_REMOVAL_FROM_COUNT: Final = 1000
"""Messages from which on those that a reader has completed are taken out as a range. [ours]"""

QUERY_NAME_MAX_BYTES: Final = 200
"""Bytes in the name of a query that commits batches, and in that of its checkpoint. [ours]"""

QUERIES_MAX_COUNT: Final = 10_000
"""Queries whose last batch is remembered. [ours]"""

QUERIES_LISTED_MAX_COUNT: Final = 1000
"""Queries in one answer that lists them. [ours]"""

QUERY_IDLE_S: Final = 90 * 24 * 3600
"""After so long without a batch, a query makes room for another. [ours]"""

QUERY_SINGLE_IDLE_S: Final = 3600
"""The same for a name that has had batch 0 only: most are of one data frame. [ours]"""

KEY_LIFETIME_S: Final = 365 * 24 * 3600
"""After so long a queue manager makes itself a new key pair. [ours]"""

KEY_RETENTION_S: Final = 90 * 24 * 3600
"""How long a key pair that was replaced still decrypts. [ours]"""

KEY_DEFAULT_BITS: Final = 2048
"""The length of new key pairs; Windows makes them half as long. [ours]"""

CERTIFICATES_PER_USER_MAX_COUNT: Final = 32
"""Certificates that one user may register. [ours]"""

QUERIES_OVER_MAX_COUNT: Final = 10_000
"""Queries known to be over, so that what comes late for them is refused. [ours]"""

STAGED_MAX_BYTES: Final = 1024 * 1024 * 1024
"""Bytes that transactions have sent and not committed; their owners share them. [ours]"""

STAGED_MEMORY_MAX_BYTES: Final = 512 * 1024 * 1024
"""Those of them that are in memory: all but what is set aside. One owner may have half, which is
one transaction of the longest kind. [ours]"""

ASIDE_FROM_BYTES: Final = 256 * 1024
"""From so many bytes on, what a prepared transaction sends is set aside: it is written once, and
not again when the transaction commits. Less is not worth a file of its own. [ours]"""

STAGED_MAX_AGE_S: Final = 7 * 24 * 3600
"""After so long, a part of a batch that nobody committed is given up. [ours]"""

MESSAGE_NUMBER_MAX_COUNT: Final = 0xFFFFFFFF
"""Message numbers before they begin again at 1; 0 means "not numbered". [MQQB 3.1.1.3]"""

VOUCHERS_MAX_COUNT: Final = 200_000
"""Vouchers of what was sent under keys. [ours]"""

VOUCHER_WINDOW_S: Final = 24 * 3600
"""How long a key is remembered after its message was sent. [ours]"""

VOUCHER_GRACE_S: Final = 600
"""A voucher so young makes no room for others, whatever comes. [ours]"""

VOUCHER_KEY_MAX_CHARACTERS: Final = 255
"""The key under which a message is sent. [ours]"""

VOUCHER_DIGEST_BYTES: Final = 16
"""What is kept of keys, and what senders say of their messages. [ours]"""

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
