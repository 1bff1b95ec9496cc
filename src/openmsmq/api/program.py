"""Requests and replies about what only the program around a queue manager can do and know.

That is to make back-ups, to read its configuration again, and to say what it logs.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from openmsmq.api.base import Number, Reply, Request, Text
from openmsmq.api.facts import ADMINISTER, Facts, Repeats

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
"""What can be logged at least, the most talkative first."""

LOG_LEVEL_MAX_S: Final = 7 * 86_400
"""The longest time for which another level is logged, if it is not for good. [ours]"""


class BackupPhase(Enum):
    """What is being done for a back-up."""

    NONE = "none"
    """There was no back-up yet."""
    STARTING = "starting"
    """Its place is looked at."""
    COPYING = "copying"
    """The moment that it shows is fixed."""
    CHECKING = "checking"
    """Everything is copied."""
    DONE = "done"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether another one may begin."""
        return self in (BackupPhase.NONE, BackupPhase.DONE, BackupPhase.FAILED)


class BackupState(Reply, frozen=True, tag="backup-state"):
    """How far the last back-up since the start has come."""

    number: int
    """Back-ups are counted from 1; 0 if there was none since the start."""
    directory: str
    state: str
    """The value of a `BackupPhase`."""
    copied_bytes: int
    total_bytes: int
    begun_time_s: int
    """The moment that it shows."""
    ended_time_s: int
    """0 while it is under way."""
    problem: str
    """Why it failed; empty otherwise."""


class BeginBackup(Request[BackupState], frozen=True, tag="begin-backup"):
    """Back the queue manager up into a new directory on its own computer.

    Answered when the moment is fixed that the back-up will show; it goes on from there, whether
    the connection lasts or not.
    """

    facts = Facts(ADMINISTER, Repeats.NEVER, is_audited=True)

    directory: Text
    """An absolute path; the directory must be missing or empty."""


class GetBackup(Request[BackupState], frozen=True, tag="get-backup"):
    """Ask how far the last back-up has come."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS)


class Setting(msgspec.Struct, frozen=True, array_like=True):
    """One value of the configuration, as it is in force."""

    key: str
    """Its key in the configuration file; one of a table with the table before it."""
    value: str
    """In JSON; what is secret of it is left out."""
    source: str
    """`default`, `file`, `environment`, `flag`, or `request` if somebody has asked for it."""
    needs_restart: bool
    """Whether another value counts only after a restart."""
    waiting: str = ""
    """The value that a restart would bring, as the last reload has found it; empty if none."""

    @property
    def is_default(self) -> bool:
        """Whether it is as it would be if nobody had said anything."""
        return self.source == "default" and not self.waiting


class Configuration(Reply, frozen=True, tag="configuration"):
    """The configuration as it is in force."""

    file: str
    """The file that it comes from; empty without one."""
    settings: list[Setting]


class GetConfiguration(Request[Configuration], frozen=True, tag="get-configuration"):
    """Ask for the configuration as it is in force, and where each value comes from."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS)


class ReloadedPart(msgspec.Struct, frozen=True, array_like=True):
    """What was read again, and how that went."""

    what: str
    problem: str
    """Why it could not be used, so that what was there before counts on; empty if it was."""


class Reloaded(Reply, frozen=True, tag="reloaded"):
    """What was read again."""

    parts: list[ReloadedPart]
    changed: list[str]
    """The keys of the configuration whose new values count from now on."""
    waiting: list[str]
    """The keys whose new values count after a restart."""


class Reload(Request[Reloaded], frozen=True, tag="reload"):
    """Have everything read again that can change while a queue manager runs."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS, is_audited=True)


class LogLevel(Reply, frozen=True, tag="log-level"):
    """What is logged at least."""

    level: str
    """One of `LOG_LEVELS`."""
    until_s: int
    """When the configured level comes back; 0 if it does not by itself."""
    configured: str
    """The level of the configuration."""


class SetLogLevel(Request[LogLevel], frozen=True, tag="set-log-level"):
    """Have another level logged from now on, for good or for some time."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS, is_audited=True)

    level: Text
    """One of `LOG_LEVELS`."""
    for_s: Number = 0
    """For how long; 0 until the queue manager ends."""
