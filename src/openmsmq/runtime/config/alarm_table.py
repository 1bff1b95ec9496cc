"""The table `[alarms]` of a configuration file: of what an operator wants to hear, and where.

Keys of `[alarms]` itself are for all alarms; each table below it, such as `[alarms.disk]`, is one
alarm. What it looks at is said by the one threshold that it has. An alarm that could never be
raised, or that means something else than it looks like, is refused.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec

from openmsmq.model.errors import MsmqError
from openmsmq.model.limits import QUEUE_FILTER_MAX_CHARACTERS
from openmsmq.model.names import PathName
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.tables import read_table, says

ALARMS_MAX_COUNT: Final = 50
"""Alarms of one configuration: each costs a look at all queues."""

WEBHOOK_MAX_CHARACTERS: Final = 2000
"""The longest address of a webhook."""

_TIME_MAX_S: Final = 365 * 86_400
_NUMBER_MAX: Final = (1 << 62) - 1
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


class Measure(Enum):
    """What an alarm looks at; the values are the keys of their thresholds."""

    OLDEST_S = "oldest_s"
    MESSAGES = "messages"
    BYTES = "bytes"
    DEAD_LETTERS = "dead_letters"
    STUCK_S = "stuck_s"
    QUOTA_PERCENT = "quota_percent"
    DISK_PERCENT = "disk_percent"
    DISK_FREE_BYTES = "disk_free_bytes"
    STANDBY_LAG_S = "standby_lag_s"
    LOG_RECORDS = "log_records"

    @property
    def is_low_bad(self) -> bool:
        """Whether it is raised by values below its threshold."""
        return self is Measure.DISK_FREE_BYTES

    @property
    def names_queues(self) -> bool:
        """Whether it looks at queues that a pattern can choose."""
        return self in _OF_QUEUES


_OF_QUEUES: Final = (
    Measure.OLDEST_S,
    Measure.MESSAGES,
    Measure.BYTES,
    Measure.STUCK_S,
    Measure.QUOTA_PERCENT,
)


class AlarmRule(msgspec.Struct, frozen=True):
    """One alarm as an operator has written it down."""

    name: str
    measure: Measure
    threshold: int
    clear: int
    """It is cleared by the first value that is better than this."""
    queues: str = ""
    for_s: int = 0
    remind_s: int = 0
    webhook: str = ""
    queue: str = ""

    def is_bad(self, value: int) -> bool:
        """Whether a value raises it."""
        return value <= self.threshold if self.measure.is_low_bad else value >= self.threshold

    def is_good(self, value: int) -> bool:
        """Whether a value clears it; between the two it stays as it is."""
        return value > self.clear if self.measure.is_low_bad else value < self.clear


class AlarmTable(msgspec.Struct, frozen=True):
    """All alarms."""

    look_s: int = 10
    rules: tuple[AlarmRule, ...] = ()


_Seconds = Annotated[int, msgspec.Meta(ge=0, le=_TIME_MAX_S)]
_Age = Annotated[int, msgspec.Meta(ge=1, le=_TIME_MAX_S)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=_NUMBER_MAX)]
_Percent = Annotated[int, msgspec.Meta(ge=1, le=100)]


class AlarmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `[alarms]` itself."""

    look_s: Annotated[int, says("How often is looked, in seconds.", ge=1, le=3600)] = 10
    remind_s: Annotated[
        int,
        says(
            "After how many seconds an alarm that is still raised is told again. 0: never.",
            ge=0,
            le=_TIME_MAX_S,
        ),
    ] = 14_400
    webhook: Annotated[
        str, says("Address that is told by a POST with JSON, `http` or `https`. Empty: none.")
    ] = ""
    queue: Annotated[
        str, says("Queue of this queue manager that gets a message with JSON. Empty: none.")
    ] = ""


class AlarmKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of one alarm; it has one of the thresholds."""

    oldest_s: Annotated[
        _Age | None, says("Raised when the oldest message of a queue is so many seconds old.")
    ] = None
    messages: Annotated[_Count | None, says("Raised when a queue has so many messages.")] = None
    bytes: Annotated[_Count | None, says("Raised when its messages have so many bytes.")] = None
    dead_letters: Annotated[
        _Count | None, says("Raised when one of the two dead-letter queues has so many messages.")
    ] = None
    stuck_s: Annotated[
        _Age | None,
        says("Raised when a message for another computer could not leave for so many seconds."),
    ] = None
    quota_percent: Annotated[
        _Percent | None,
        says(
            "Raised when so much of a quota is used: of each queue that fits `queues`; without "
            "`queues`, of the queue manager."
        ),
    ] = None
    disk_percent: Annotated[
        _Percent | None, says("Raised when so much of the disk of the store is used.")
    ] = None
    disk_free_bytes: Annotated[
        _Count | None, says("Raised when no more than this is free there.")
    ] = None
    standby_lag_s: Annotated[
        _Age | None,
        says(
            "Raised when no standby of `[replication]` has what was there so many seconds ago, or "
            "there was none for so long."
        ),
    ] = None
    log_records: Annotated[
        _Count | None,
        says(
            "Raised when the log of `[replication]` has so many records: a back-up is due, or a "
            "standby is away that lacks them."
        ),
    ] = None
    queues: Annotated[
        str,
        says(
            "Which queues: a part of their names, or a pattern with `*`, `?` and `[`, as for "
            "`queue list --filter`. Empty: all."
        ),
    ] = ""
    clear: Annotated[
        _Count | None,
        says(
            "Cleared when the value is below this (of `disk_free_bytes`: above). Without it, a "
            "tenth of the threshold away from it."
        ),
    ] = None
    for_s: Annotated[
        int,
        says("Raised only if it is so for so many seconds on end.", ge=0, le=_TIME_MAX_S),
    ] = 0
    remind_s: Annotated[_Seconds | None, says("As in `[alarms]`, for this one.")] = None
    webhook: Annotated[str | None, says("As in `[alarms]`, for this one.")] = None
    queue: Annotated[str | None, says("As in `[alarms]`, for this one.")] = None


def read_alarms(table: dict[str, Any], file: str) -> AlarmTable:
    """Read the table of a file."""
    alarms = {name: value for name, value in table.items() if isinstance(value, dict)}
    others = {name: value for name, value in table.items() if name not in alarms}
    settings = read_table(others, AlarmSettings, file, "alarms")
    _check_places(settings.webhook, settings.queue, f"{file}: [alarms]", "alarms")
    if len(alarms) > ALARMS_MAX_COUNT:
        raise ConfigError(
            f"{file}: [alarms] has {len(alarms)} alarms; at most {ALARMS_MAX_COUNT}: patterns of "
            "names let one look at many queues",
            "alarms",
        )
    rules = tuple(_rule(name, value, settings, file) for name, value in alarms.items())
    return AlarmTable(settings.look_s, rules)


def _rule(name: str, table: dict[str, Any], settings: AlarmSettings, file: str) -> AlarmRule:
    where = f"{file}: [alarms.{name}]"
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"{where}: the name of an alarm has up to 64 letters, digits, hyphens and underscores",
            "alarms",
            name,
        )
    found = read_table(table, AlarmKeys, file, "alarms", name)
    given = [measure for measure in Measure if getattr(found, measure.value) is not None]
    if len(given) != 1:
        known = ", ".join(measure.value for measure in Measure)
        problem = "has no threshold" if not given else "has several thresholds"
        raise ConfigError(f"{where} {problem}: give one of {known}", "alarms", name)
    measure = given[0]
    threshold = getattr(found, measure.value)
    webhook = settings.webhook if found.webhook is None else found.webhook
    rule = AlarmRule(
        name=name,
        measure=measure,
        threshold=threshold,
        clear=_default_clear(measure, threshold) if found.clear is None else found.clear,
        queues=found.queues,
        for_s=found.for_s,
        remind_s=settings.remind_s if found.remind_s is None else found.remind_s,
        webhook=webhook,
        queue=settings.queue if found.queue is None else found.queue,
    )
    if found.queues and not measure.names_queues:
        raise ConfigError(
            f"{where} queues: {measure.value} is of the whole queue manager; leave it out",
            "alarms",
            name,
            "queues",
        )
    if len(found.queues) > QUEUE_FILTER_MAX_CHARACTERS:
        raise ConfigError(
            f"{where} queues has more than {QUEUE_FILTER_MAX_CHARACTERS} characters",
            "alarms",
            name,
            "queues",
        )
    if rule.is_bad(rule.clear) and rule.clear != threshold:
        better = "more" if measure.is_low_bad else "less"
        raise ConfigError(
            f"{where} clear = {rule.clear} is wrong: it would be raised again at once; give "
            f"{better} than {measure.value} = {threshold}",
            "alarms",
            name,
            "clear",
        )
    _check_places(found.webhook or "", found.queue or "", where, "alarms", name)
    return rule


def _default_clear(measure: Measure, threshold: int) -> int:
    """Return the value from which on it is well again: a tenth away, and one at least."""
    step = max(1, threshold // 10)
    return threshold + step if measure.is_low_bad else max(0, threshold - step) or 1


def _check_places(webhook: str, queue: str, where: str, *at: str) -> None:
    problem = webhook_problem(webhook) if webhook else ""
    if problem:
        # The address itself is left out: whoever knows it may be able to use it.
        raise ConfigError(f"{where} webhook is wrong: {problem}", *at, "webhook")
    if queue:
        try:
            is_local = PathName.parse(queue).is_local
        except MsmqError as error:
            raise ConfigError(
                f"{where} queue = {queue!r} is wrong: {error}", *at, "queue"
            ) from None
        if not is_local:
            raise ConfigError(
                f"{where} queue = {queue!r} is wrong: it names another computer; give a queue of "
                r"this one, such as private$\alarms",
                *at,
                "queue",
            )


def webhook_problem(address: str) -> str:
    """Return what is wrong with the address of a webhook; nothing if it can be used."""
    if len(address) > WEBHOOK_MAX_CHARACTERS:
        return f"it has more than {WEBHOOK_MAX_CHARACTERS} characters"
    if not address.isascii() or not address.isprintable() or " " in address:
        return "it has letters that no address has; write them with %"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https"):
        return "it begins with https:// or http://"
    if not parts.hostname or port == 0:
        return "it names no host"
    if parts.username is not None or parts.password is not None:
        return "it has a user or a password before the host; put what is secret into its path"
    return ""


def without_secrets(address: str) -> str:
    """Return what may be shown of the address of a webhook: whoever knows its path can use it."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}/…"
