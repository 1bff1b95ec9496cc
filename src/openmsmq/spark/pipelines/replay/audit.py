"""What replays have planned and done, as a table of Parquet files.

The directory is the table: one row for each thing that was decided about or done with a dead
letter, by run. Beside it, where readers of the table do not look, is the plan of each run. A plan
is one file, so it is there as a whole or not at all.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructType

from openmsmq.spark.errors import BadOption
from openmsmq.spark.pipelines.replay.letters import KEY
from openmsmq.spark.pipelines.replay.plan import PLAN, PLANNED, SKIPPED, Method

SENDING: Final = "sending"
"""From here on it may have been sent."""

SENT: Final = "sent"
IN_DOUBT: Final = "in doubt"
"""Whether it was sent is not known: its dead letter stays, for a person to decide."""

_FINAL: Final = (SENT, SKIPPED)
_RUN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PLANS: Final = "_plans"

_TEXT: Final = pa.string()
_ARROW: Final = pa.schema(
    {
        "time": pa.timestamp("us", "UTC"),
        "who": _TEXT,
        "queue_manager": _TEXT,
        "queue": _TEXT,
        "lookup_id": pa.int64(),
        "message_id": _TEXT,
        "label": _TEXT,
        "reason": _TEXT,
        "age_s": pa.int64(),
        "destination": _TEXT,
        "new_destination": _TEXT,
        "changed": pa.list_(_TEXT),
        "method": _TEXT,
        "batch": pa.int32(),
        "attempt": pa.int32(),
        "action": _TEXT,
        "note": _TEXT,
    }
)
AUDIT: Final = from_arrow_schema(_ARROW)
"""The columns of the table; `run`, by which it is partitioned, comes last."""

_COPIED: Final = tuple(
    name
    for name in AUDIT.fieldNames()
    if name in PLAN.fieldNames() and name not in ("action", "note")
)


class Letter(msgspec.Struct, frozen=True):
    """A dead letter that a run sends, as its plan has it."""

    queue: str
    lookup_id: int
    message_id: str
    address: str
    changes: dict[str, Any]
    """The new values of what was changed, by column."""
    shown: dict[str, Any]
    """What the audit table shows of it."""

    @property
    def key(self) -> tuple[str, int]:
        """Its name at its queue manager."""
        return self.queue, self.lookup_id


class Noted(msgspec.Struct, frozen=True):
    """What was noted about a letter of a batch before."""

    key: tuple[str, int]
    action: str
    attempt: int


class Batch(msgspec.Struct, frozen=True):
    """Letters that are sent together, and how far that has come."""

    number: int
    method: Method
    letters: list[Letter]
    notes: list[Noted]

    @property
    def is_begun(self) -> bool:
        """Whether something of it may have been sent."""
        return any(noted.action == SENDING for noted in self.notes)

    @property
    def last_attempt(self) -> int:
        """The highest attempt of which something was noted; -1 for none."""
        return max((noted.attempt for noted in self.notes), default=-1)

    def noted(self, *actions: str, attempt: int | None = None) -> set[tuple[str, int]]:
        """Name the letters of which one of some actions was noted, in an attempt or in any."""
        return {
            noted.key
            for noted in self.notes
            if noted.action in actions and attempt in (None, noted.attempt)
        }


def require_run(run: str) -> None:
    """Refuse an identifier of a run that cannot be part of a path."""
    if not _RUN.fullmatch(run):
        raise BadOption("run", f"{run!r}: write 1 to 64 letters, digits, dots, dashes or _")


class AuditTable:
    """The table and the plans in one directory."""

    def __init__(
        self, spark: SparkSession, directory: str, who: str, clock: Callable[[], datetime]
    ) -> None:
        self._spark = spark
        self._directory = directory.rstrip("/")
        self._who = who
        self._clock = clock
        self._plans: dict[str, DataFrame] = {}

    # Plans.

    def plan(self, run: str) -> DataFrame | None:
        """Return the plan of a run; None if there is none."""
        require_run(run)
        if run not in self._plans:
            found = self._read(f"{self._directory}/{_PLANS}/{run}", PLAN)
            if found is None or found.isEmpty():
                return None
            self._plans[run] = found
        return self._plans[run]

    def runs_at(self, run: str) -> tuple[str, set[str]]:
        """Return the name under which queue managers know a run, and their names."""
        plan = self.plan(run)
        if plan is None:
            raise BadOption("run", f"{run} has no plan in {self._directory}")
        row = plan.agg(F.first("token"), F.collect_set("queue_manager")).first()
        assert row is not None
        return f"replay {run} {row[0]}", set(row[1])

    def begin(self, run: str, plan: DataFrame) -> DataFrame:
        """Keep the plan of a new run, and note what it plans; gives the plan as it is kept."""
        if self.plan(run) is not None:
            raise BadOption("run", f"{run} has a plan already: it is what the run does")
        path = f"{self._directory}/{_PLANS}/{run}"
        plan.coalesce(1).write.mode("overwrite").parquet(path)
        kept = self._read(path, PLAN)
        assert kept is not None
        self._plans[run] = kept
        self._append(
            run,
            kept.withColumns(
                {"time": F.lit(self._clock()), "who": F.lit(self._who), "attempt": F.lit(0)}
            ),
        )
        return kept

    # Batches.

    def open_batches(self, run: str, queue_manager: str) -> Iterator[Batch]:
        """Yield the batches of a run of which not every letter has found its end, in order."""
        plan = self.plan(run)
        if plan is None:
            return
        mine = F.col("queue_manager") == queue_manager
        notes: dict[int, list[Noted]] = {}
        for row in self.notes(run).where(mine & (F.col("action") != PLANNED)).collect():
            noted = Noted((row["queue"], row["lookup_id"]), row["action"], row["attempt"])
            notes.setdefault(row["batch"], []).append(noted)
        rows = plan.where(mine & (F.col("action") == PLANNED))
        ordered = rows.coalesce(1).sortWithinPartitions("batch", "queue", "arrival_number")
        for number, group in itertools.groupby(ordered.toLocalIterator(), lambda row: row["batch"]):
            members = list(group)
            letters = [_letter(row) for row in members]
            batch = Batch(number, Method(members[0]["method"]), letters, notes.get(number, []))
            if batch.noted(*_FINAL) != {letter.key for letter in letters}:
                yield batch

    # The table.

    def table(self) -> DataFrame:
        """Return all that was noted."""
        found = self._read(self._directory, StructType([*AUDIT.fields]).add("run", StringType()))
        if found is None:
            return self._spark.createDataFrame([], AUDIT).withColumn("run", F.lit(""))
        return found

    def notes(self, run: str) -> DataFrame:
        """Return what was noted of a run."""
        return self.table().where(F.col("run") == run)

    def unfinished(self) -> DataFrame:
        """Return the letters that runs have begun to send without coming to an end."""
        sending = F.max(F.col("action") == SENDING)
        ended = F.max(F.col("action").isin(*_FINAL))
        return (
            self.table()
            .groupBy("run", *KEY, "message_id")
            .agg(sending.alias("sending"), ended.alias("ended"))
            .where("sending and not ended")
            .drop("sending", "ended")
        )

    def results(self, run: str) -> DataFrame:
        """Return for each letter of a run what became of it in the end."""
        order = F.struct(
            # A column has to be said to be one: a bare name would be a text to look for.
            F.array_position(
                F.array(*map(F.lit, (PLANNED, SENDING, IN_DOUBT, SKIPPED, SENT))), F.col("action")
            ),
            "time",
        )
        rest = [name for name in AUDIT.fieldNames() if name not in (*KEY, "message_id")]
        return (
            self.notes(run)
            .groupBy(*KEY, "message_id")
            .agg(F.max_by(F.struct(*rest), order).alias("last"))
            .select(*KEY, "message_id", "last.*")
            .orderBy("queue_manager", "queue", "lookup_id")
        )

    def note(
        self, run: str, letters: Iterable[Letter], action: str, *, attempt: int = 0, note: str = ""
    ) -> None:
        """Note one thing about letters; once it returns, it is noted."""
        same = {"time": self._clock(), "who": self._who, "attempt": attempt}
        same |= {"action": action, "note": note or None}
        rows = [{**letter.shown, **same} for letter in letters]
        if rows:
            self._append(run, self._spark.createDataFrame(pa.Table.from_pylist(rows, _ARROW)))

    def _append(self, run: str, rows: DataFrame) -> None:
        chosen = rows.select(*(F.col(field.name).cast(field.dataType) for field in AUDIT.fields))
        # One file, and a directory for each run: it is there at once, and runs do not meet.
        chosen.coalesce(1).write.mode("append").parquet(f"{self._directory}/run={run}")

    def _read(self, path: str, schema: StructType) -> DataFrame | None:
        try:
            return self._spark.read.schema(schema).parquet(path)
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return None
            raise


def _letter(row: Row) -> Letter:
    changes = {} if row["changes"] is None else row["changes"].asDict()
    return Letter(
        row["queue"],
        row["lookup_id"],
        row["message_id"],
        row["address"],
        {name: changes[name] for name in row["changed"]},
        {name: row[name] for name in _COPIED},
    )
