"""Tables that `CREATE TABLE … USING msmq` made: their options travel in the schema.

Spark keeps the options of such a table in its catalog, shows them to the data source when it asks
for the columns, and never again: whoever makes the reader gets none. But it keeps the columns as
they were told, with what was noted beside them. So the options are noted beside the first column.

They count for reading only. The columns that are written come from any query, and may have been
read from another table of this kind: then the note beside them names the wrong queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

from openmsmq.spark.errors import BadOption

_PREFIX: Final = "option."
"""How Spark marks what stood in the clause OPTIONS, among the properties of a table."""
_PROVIDER: Final = "provider"
"""A property that every table has, and a data frame has not."""
_NOTE: Final = "msmq"


def table_options(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of a table that is being made; None if this is about a data frame."""
    if _PROVIDER not in options:
        return None
    given = {
        name.removeprefix(_PREFIX): value
        for name, value in options.items()
        if name.startswith(_PREFIX)
    }
    if "token" in given:
        raise BadOption(
            "token", "would stand in the catalog for everybody: use tokenFile or certificate"
        )
    return given


def with_note(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Note the options of a table beside its first column."""
    first, *others = schema.fields
    noted = StructField(first.name, first.dataType, first.nullable, {_NOTE: dict(options)})
    return StructType([noted, *others])


def reading_options(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the options of one query, and with them those of the table that it reads.

    A query that names its queue has all options itself, whatever schema it was given.
    """
    own = {name.lower(): value for name, value in options.items()}
    if "queue" in own:
        return own
    noted = schema.fields[0].metadata.get(_NOTE) if schema.fields else None
    if noted is None:
        raise BadOption(
            "queue",
            r"is missing: name a queue, such as private$\orders. A table of CREATE TABLE has its "
            "options if it was made without a list of columns; the option columns chooses them",
        )
    return {name.lower(): value for name, value in noted.items()} | own


def writing_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of writing: without `columns`, by which a view to insert into was made."""
    own = {name: value for name, value in options.items() if name.lower() != "columns"}
    if not {name.lower() for name in own} & {"queue", "queuecolumn"}:
        raise BadOption(
            "queue",
            r"is missing: name a queue, such as private$\results. Spark does not tell to which "
            "table of CREATE TABLE rows go: write INSERT INTO table WITH (`qm` = '...', `queue` = "
            "'...'), or insert into a view of CREATE TEMPORARY VIEW ... USING msmq",
        )
    return own
