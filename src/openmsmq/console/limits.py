"""The limits of the console: each has a name, a unit, and a line that says what it bounds."""

from __future__ import annotations

from typing import Final

# Signing in.

SESSIONS_MAX_COUNT: Final = 100
"""People who are signed in at a time."""

SESSIONS_OF_ONE_MAX_COUNT: Final = 10
"""Sessions of one identity; with one more, the one that was idle longest ends."""

SESSION_IDLE_MAX_S: Final = 30 * 60
"""A session ends when nobody has done anything in it for so long; pages that refresh themselves do
not count."""

SESSION_MAX_S: Final = 12 * 3600
"""A session ends so long after it began, whatever is done in it."""

LINK_MAX_S: Final = 15 * 60
"""How long the link that is printed at the start is good, if nobody uses it."""

ATTEMPTS_BURST_COUNT: Final = 10
"""Attempts to sign in that one user of this computer has at once, or one address elsewhere."""

ATTEMPT_PAUSE_S: Final = 6.0
"""Each of them gets another attempt after so long."""

ATTEMPTS_ALL_BURST_COUNT: Final = 50
"""Attempts to sign in that all addresses together have at once; users of this computer do not
count."""

ATTEMPT_ALL_PAUSE_S: Final = 1.0
"""All of them get another attempt after so long."""

SOURCES_MAX_COUNT: Final = 4096
"""Users and addresses whose attempts are remembered."""

NEWS_MAX_COUNT: Final = 5
"""What a session is told on its next page."""

TOKEN_MAX_CHARACTERS: Final = 1000
"""What can be typed as a token."""

# Requests.

FORM_MAX_BYTES: Final = 5 << 20
"""What a browser may send: a message with its properties, as a form writes it."""

FORMS_MAX_BYTES: Final = 64 << 20
"""What all forms that come at the same time may have together."""

STRANGERS_FORM_MAX_BYTES: Final = 16 << 10
"""What a browser may send whose user is not signed in, such as a token: to read more takes time."""

FORM_MAX_FIELDS: Final = 40
"""Fields of one form."""

FORM_MAX_S: Final = 30.0
"""How long a form may take to come."""

CONNECTIONS_MAX_COUNT: Final = 200
"""Browsers' connections at a time; with one more, the oldest gives way that has no whole request
under way."""

KEEP_ALIVE_S: Final = 15
"""How long a connection without a request stays open."""

SEGMENT_MAX_CHARACTERS: Final = 3000
"""The name of a queue in the path of a page."""

CALL_MAX_S: Final = 20.0
"""How long an answer of the queue manager may take."""

RECONNECT_MAX_S: Final = 2.0
"""How long a page waits for a queue manager that has gone away."""

TIME_KEPT_S: Final = 60.0
"""How often a session asks what time it is to the queue manager."""

# Pages.

QUEUES_PAGE_COUNT: Final = 50
"""Queues on one page."""

ALARMS_SHOWN_COUNT: Final = 3
"""Queues for which the overview shows one alarm; the status has all of them."""

FULLEST_SHOWN_COUNT: Final = 8
"""Queues with most messages on the first page."""

MESSAGES_PAGE_COUNT: Final = 50
"""Messages on one page."""

MESSAGES_PAGE_BYTES: Final = 4 << 20
"""Bytes after which a page takes no more messages."""

SEARCHED_MAX_COUNT: Final = 5_000
"""Messages that are looked at for one page of those with a text in them."""

SEARCHED_MAX_BYTES: Final = 32 << 20
"""Bytes after which no further messages are looked at for that page."""

SEARCH_BATCH_COUNT: Final = 500
"""Messages that are asked for at once while some are searched."""

OUTGOING_SHOWN_COUNT: Final = 200
"""Outgoing queues on one page."""

IN_DOUBT_SHOWN_COUNT: Final = 200
"""Transactions in doubt on one page."""

CONNECTIONS_SHOWN_COUNT: Final = 200
"""Sessions, or connections of applications, on one page."""

SEQUENCES_PAGE_COUNT: Final = 50
"""Incoming sequences on one page."""

AFTER_MAX_CHARACTERS: Final = 200
"""Where a page of incoming sequences goes on, as its address says it."""

LETTERS_MAX_COUNT: Final = 5000
"""Dead letters of one queue that are sorted by reason: the oldest."""

LETTERS_MAX_BYTES: Final = 64 << 20
"""Bytes after which no further dead letters are looked at."""

LETTERS_AGAIN_S: Final = 30.0
"""How often a page that looks again by itself counts all dead letters anew, if some have left."""

LETTER_GROUPS_KEPT_COUNT: Final = 20_000
"""Reasons and destinations of dead letters that are remembered, of all sessions together."""

LETTER_LOOKS_KEPT_COUNT: Final = 500
"""Looks into dead-letter queues that are remembered, also those that have found nothing: some for
each session, and sessions come and go."""

REPLAY_MAX_COUNT: Final = 1000
"""Dead letters that one press of a button sends again."""

MAP_SITES_MAX_COUNT: Final = 150
"""Sites of an enterprise that is drawn: more would take long, and nobody could read it."""

MAP_MEMBERS_SHOWN_COUNT: Final = 500
"""Queue managers in the table of the map."""

TRACE_LOOKED_MAX_COUNT: Final = 200_000
"""Messages of one queue manager that are looked at to find one."""

SETTINGS_SHOWN_COUNT: Final = 500
"""Values of the configuration on one page: tables of hosts or peers may be long."""

AUDIT_PAGE_COUNT: Final = 50
"""Lines of the audit log on one page."""

FILTER_MAX_CHARACTERS: Final = 200
"""What can be typed to find a queue."""

EXPORT_BATCH_COUNT: Final = 200
"""Messages that are asked for at once while a queue is downloaded."""

# Bodies.

TEXT_SHOWN_CHARACTERS: Final = 64 << 10
"""What a page shows of a body that is text."""

HEX_SHOWN_BYTES: Final = 4 << 10
"""What a page shows of a body as bytes."""

PARSED_MAX_BYTES: Final = 256 << 10
"""A longer body is not laid out as JSON or XML."""

PARSED_DEPTH_MAX_COUNT: Final = 64
"""Elements, objects or lists inside each other in a body that is laid out: each line of the layout
begins with so many steps."""

TEXTS_SHOWN_COUNT: Final = 100
"""Texts found in a body of bytes that a page shows."""

TEXTS_SEARCHED_BYTES: Final = 64 << 10
"""How far a body of bytes is searched for texts."""

# The history.

HISTORY_POINTS_COUNT: Final = 60
"""Points of a small chart."""

HISTORY_STEP_S: Final = 10.0
"""The time between two of them."""

RATE_POINTS_COUNT: Final = 7
"""Points from which rates are reckoned: the last minute."""

HISTORY_QUEUES_MAX_COUNT: Final = 20_000
"""Queues of which a history is kept."""

HISTORY_ASKED_COUNT: Final = 500
"""Queues with most messages, and with most that comes in, of which a history is kept unasked."""

HISTORY_REFUSED_S: Final = 300.0
"""If the queue manager refuses the console itself, it is asked again after so long."""

# Supervision.

DISK_FREE_MIN_BYTES: Final = 1 << 30
"""Less room on the disk of the store needs somebody."""

HEALTH_KEPT_S: Final = 1.0
"""For so long the last answer to whether the queue manager is ready is given again."""
