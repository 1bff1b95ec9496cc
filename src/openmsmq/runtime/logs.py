"""Structured logs: one line for each event, as `key=value` or as JSON, on standard error.

An event has a short name that stays the same from version to version, and facts. Facts are
addresses, counts and reasons; tokens and message bodies are never among them.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from enum import Enum
from typing import Final, Literal, TypeAlias

from openmsmq.runtime.clocks import read_clocks, timestamp
from openmsmq.runtime.limits import LIMITED_LINES_PER_S

Fact: TypeAlias = str | int | float | bool | None
Format: TypeAlias = Literal["text", "json"]
Level: TypeAlias = Literal["debug", "info", "warning", "error"]

_LEVELS: Final[dict[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


_TOLD_OTHERWISE: Final = "opentelemetry."
"""Loggers that repeat what an event of ours tells."""


class Event(Enum):
    """Everything that is logged."""

    STARTING = "starting"
    LISTENING = "listening"
    READY = "ready"
    CRASHED = "crashed-before"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    CONNECTION_REFUSED = "connection-refused"
    CONNECTION_BROKEN = "connection-broken"
    TOKENS_CHANGED = "tokens-changed"
    TOKENS_UNUSABLE = "tokens-unusable"
    AUDIT_FAILED = "audit-failed"
    SESSION_ACCEPTED = "session-accepted"
    SESSION_CONNECTED = "session-connected"
    SESSION_FAILED = "session-failed"
    SESSION_CUT = "session-cut"
    SESSION_ENDED = "session-ended"
    SESSION_CERTIFICATE_CHANGED = "session-certificate-changed"
    SESSION_CERTIFICATE_UNUSABLE = "session-certificate-unusable"
    SESSION_CERTIFICATE_ENDS = "session-certificate-ends"
    ACCOUNTS_UNUSABLE = "accounts-unusable"
    RPC_REFUSED = "rpc-refused"
    RPC_DEFECT = "rpc-defect"
    HTTP_DEFECT = "http-defect"
    RPC_MAPPER_OFF = "rpc-mapper-off"
    MULTICAST_UNAVAILABLE = "multicast-unavailable"
    MULTICAST_LOST = "multicast-lost"
    WITHOUT_DIRECTORY = "without-directory"
    IDENTITY_REFUSED = "identity-refused"
    ACKNOWLEDGMENT_REFUSED = "acknowledgment-refused"
    SEQUENCE_REFUSED = "sequence-refused"
    MESSAGE_DROPPED = "message-dropped"
    MESSAGE_LEFT = "message-left"
    REPORT_DROPPED = "report-dropped"
    HOST_NOT_RESOLVED = "host-not-resolved"
    CAPTURE_ENDED = "capture-ended"
    TURN_FILE_ENDED = "turn-file-ended"
    DIRECTORY_LOST = "directory-lost"
    DIRECTORY_FOUND = "directory-found"
    DIRECTORY_UNWATCHED = "directory-unwatched"
    DISCOVERY_STOPPED = "discovery-stopped"
    KEYS_MADE = "keys-made"
    KEYS_FAILED = "keys-failed"
    BACKUP_BEGUN = "backup-begun"
    BACKUP_DONE = "backup-done"
    BACKUP_FAILED = "backup-failed"
    REPLICATION_STANDBY = "replication-standby"
    REPLICATION_PRIMARY = "replication-primary"
    REPLICATION_ENDED = "replication-ended"
    REPLICATION_FILES = "replication-files"
    REPLICATION_FAILED = "replication-failed"
    REPLICATION_SILENT = "replication-silent"
    REPLICATION_HEARD = "replication-heard"
    ALARM_RAISED = "alarm-raised"
    ALARM_REMINDED = "alarm-reminded"
    ALARM_CLEARED = "alarm-cleared"
    ALARM_NOT_TOLD = "alarm-not-told"
    SPANS_DROPPED = "spans-dropped"
    SPANS_FAILED = "spans-failed"
    STORE_FULL = "store-full"
    STORE_HAS_ROOM = "store-has-room"
    STORE_FAILED = "store-failed"
    DEFECT = "defect"
    RELOADED = "reloaded"
    LOG_LEVEL_CHANGED = "log-level-changed"
    RELOAD_FAILED = "reload-failed"
    RESTART_NEEDED = "restart-needed"
    CONSOLE_STARTED = "console-started"
    CONSOLE_ENDED = "console-ended"
    CONSOLE_GIVEN_UP = "console-given-up"
    STOPPING = "stopping"
    STOPPED = "stopped"
    LIBRARY = "library"


def to_standard_error(line: str) -> None:
    """Write a line; a log that nobody reads any more must not end the queue manager."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


class EventLog:
    """Writes events of a level and above."""

    def __init__(
        self,
        format: Format = "text",
        level: Level = "info",
        write: Callable[[str], None] = to_standard_error,
    ) -> None:
        self._line = _json_line if format == "json" else _text_line
        self.level = level
        """What is logged at least; it may be changed at any time."""
        self._write = write

    def debug(self, event: Event, **facts: Fact) -> None:
        """Say what only somebody who looks for a fault wants to know."""
        self._log("debug", event, facts)

    def info(self, event: Event, **facts: Fact) -> None:
        """Say what an operator wants to find afterwards."""
        self._log("info", event, facts)

    def warning(self, event: Event, **facts: Fact) -> None:
        """Say what an operator should look at."""
        self._log("warning", event, facts)

    def error(self, event: Event, **facts: Fact) -> None:
        """Say what an operator must act on."""
        self._log("error", event, facts)

    def _log(self, level: str, event: Event, facts: dict[str, Fact]) -> None:
        if _LEVELS[level] >= _LEVELS[self.level]:
            self._write(
                self._line({"time": timestamp(), "level": level, "event": event.value}, facts)
            )


class LimitedLog:
    """Logs what strangers can make happen; a flood of it must not become a flood of lines.

    Of each event so many lines are written in a second, then they are counted.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._second_s = 0
        self._counts: dict[Event, int] = {}

    def warning(self, event: Event, **facts: Fact) -> None:
        """Log an event, or count it."""
        now_s = read_clocks().unix_s
        if now_s != self._second_s:
            self.flush()
            self._second_s = now_s
        count = self._counts[event] = self._counts.get(event, 0) + 1
        if count <= LIMITED_LINES_PER_S:
            self._log.warning(event, **facts)

    def refused(self, peer: str, door: str, reason: str) -> None:
        """Log a connection that was refused, or count it."""
        self.warning(Event.CONNECTION_REFUSED, peer=peer, door=door, reason=reason)

    def flush(self) -> None:
        """Say how many lines were left out since the last time."""
        for event, count in self._counts.items():
            if count > LIMITED_LINES_PER_S:
                self._log.warning(event, not_logged=count - LIMITED_LINES_PER_S)
        self._counts.clear()


class LibraryLogHandler(logging.Handler):
    """Passes on what libraries log, asyncio above all."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as an event."""
        if record.name.startswith(_TOLD_OTHERWISE):
            # At each attempt; what is lost by it is told by `SPANS_DROPPED`.
            self._log.debug(Event.LIBRARY, library=record.name, message=record.getMessage())
            return
        say = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({record.exc_info[1]!r})"
        say(Event.LIBRARY, library=record.name, message=text)


def _json_line(head: dict[str, str], facts: dict[str, Fact]) -> str:
    return json.dumps({**head, **facts}, ensure_ascii=False)


def _text_line(head: dict[str, str], facts: dict[str, Fact]) -> str:
    parts = list(head.values())
    parts += [f"{key}={_text_value(value)}" for key, value in facts.items()]
    return " ".join(parts)


def _text_value(value: Fact) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    plain = text.isprintable() and text and not any(letter in ' "=' for letter in text)
    return text if plain else json.dumps(text)
