"""Dead letters as a table: why each is one and for how long, and which of them are meant."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from openmsmq.model.message import MessageClass, is_negative
from openmsmq.spark.connecting import connected
from openmsmq.spark.errors import BadOption, QueueProblem, SparkSideError
from openmsmq.spark.session import SPARK_ERRORS
from openmsmq.spark.sink.options import PROPERTIES
from openmsmq.spark.source.options import read_source_options

DEAD_LETTERS: Final = "system$;deadletter"
TRANSACTIONAL_DEAD_LETTERS: Final = "system$;deadxact"
KEY: Final = ("queue_manager", "queue", "lookup_id")
"""The columns that name one dead letter."""

SETTABLE: Final = (*PROPERTIES, "text", "destination")
"""The columns that a transformation may change."""

UNKNOWN: Final = "unknown"
"""How a reason that does not show is asked for."""

REASONS: Final = tuple(each.name for each in MessageClass if is_negative(each))
_NEGATIVE: Final = 0x8000
_PREFIX: Final = "NACK_"

Transform: TypeAlias = Callable[[DataFrame], DataFrame]


def dead_letters(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Read dead letters: the columns of messages, and `reason` and `age_s` beside them.

    The options are those of the data source. Without `queue` they are the dead letters of the
    system; name others to read the dead-letter queues of applications. The age is by the clock of
    the queue manager that has the letter.
    """
    given = letter_options(options)
    place = read_source_options(given).place
    ages: Column = F.lit(None).cast("bigint")
    found: dict[str, str] = {}
    for address in place.addresses:
        with connected(place, address) as manager:
            name, now_s = manager.name, manager.status().now_s
        if name in found:
            raise QueueProblem(
                f"the queue managers at {found[name]} and {address} are both called {name}: "
                "replay their dead letters in two runs"
            )
        found[name] = address
        age = F.greatest(F.lit(0), F.lit(now_s) - F.col("arrived_time").cast("bigint"))
        ages = F.when(F.col("queue_manager") == name, age).otherwise(ages)
    messages = spark.read.format("msmq").options(**given).load()
    return messages.withColumns({"reason": reason(), "age_s": ages})


def letter_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the data source, with the dead-letter queues if none are named."""
    if any(name.lower() == "queue" for name in options):
        return dict(options)
    return {**options, "queue": f"{DEAD_LETTERS},{TRANSACTIONAL_DEAD_LETTERS}"}


def reason() -> Column:
    """Return why a message is a dead letter, as far as it shows: by its class, or by its times."""
    waited_s = F.col("arrived_time").cast("bigint") - F.col("sent_time").cast("bigint")
    return F.when(
        F.col("message_class").bitwiseAND(_NEGATIVE) != 0, F.col("message_class_name")
    ).when(waited_s >= F.col("time_to_be_received_s"), MessageClass.NACK_RECEIVE_TIMEOUT.name)


def reason_name(text: str) -> str:
    """Read a reason as people write it, such as `receive-timeout`; raises `BadOption`."""
    name = text.strip().upper().replace("-", "_")
    for known in (name, _PREFIX + name):
        if known in REASONS:
            return known
    if name == UNKNOWN.upper():
        return UNKNOWN
    shown = (each.removeprefix(_PREFIX).lower().replace("_", "-") for each in REASONS)
    raise BadOption("reason", f"{text!r} is not one of {', '.join(shown)}, {UNKNOWN}")


def select_dead_letters(
    letters: DataFrame,
    *,
    reasons: Sequence[str] = (),
    older_than_s: float | None = None,
    newer_than_s: float | None = None,
    label_like: str = "",
    destination: str = "",
    where: str = "",
) -> DataFrame:
    r"""Choose dead letters by all of the conditions that are given.

    `*` in a label or destination stands for anything. A destination is a whole format name, or
    what follows the computer in it: `private$\orders`. `where` is a condition in SQL.
    """
    chosen = letters
    names = {reason_name(each) for each in reasons}
    if names:
        known = F.col("reason").isin(*names)
        chosen = chosen.where(known | F.col("reason").isNull() if UNKNOWN in names else known)
    if older_than_s is not None:
        chosen = chosen.where(F.col("age_s") > older_than_s)
    if newer_than_s is not None:
        chosen = chosen.where(F.col("age_s") < newer_than_s)
    if label_like:
        chosen = chosen.where(F.lower("label").like(_pattern(label_like)))
    if destination:
        name, pattern = F.lower("destination"), _pattern(destination)
        chosen = chosen.where(name.like(pattern) | name.like(f"%\\\\{pattern}"))
    return chosen.where(where) if where else chosen


def _pattern(text: str) -> str:
    """Return the pattern of SQL for a text in which `*` stands for anything."""
    escaped = text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%")


# Transformations.


def setting(expressions: Mapping[str, str]) -> Transform:
    """Return SQL that sets columns to expressions, each computed from the columns before."""
    for name in expressions:
        if name not in SETTABLE:
            raise BadOption("set", f"{name!r} cannot be changed; one of {', '.join(SETTABLE)} can")

    def transform(letters: DataFrame) -> DataFrame:
        return letters.withColumns({name: F.expr(text) for name, text in expressions.items()})

    return transform


def load_transform(path: str) -> Transform:
    """Load the function `transform` of a Python file; raises `BadOption`."""
    spec = importlib.util.spec_from_file_location("openmsmq_replay_transform", path)
    if spec is None or spec.loader is None:
        raise BadOption("transform", f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadOption("transform", f"{path}: {type(error).__name__}: {error}") from None
    found = getattr(module, "transform", None)
    if not callable(found):
        raise BadOption("transform", f"{path} has no function transform(letters)")

    def transform(letters: DataFrame) -> DataFrame:
        try:
            result = found(letters)
        except (SparkSideError, *SPARK_ERRORS):
            raise
        except Exception as error:
            raise BadOption("transform", f"{path}: {type(error).__name__}: {error}") from None
        if not isinstance(result, DataFrame):
            raise BadOption("transform", f"transform in {path} gives no data frame")
        return result

    return transform


def one_after_the_other(steps: Sequence[Transform]) -> Transform | None:
    """Return one transformation for several; None for none."""
    if not steps:
        return None

    def transform(letters: DataFrame) -> DataFrame:
        for step in steps:
            letters = step(letters)
        return letters

    return transform
