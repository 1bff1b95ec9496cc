"""A project of Spark Declarative Pipelines that reads queues: its files, ready to be edited.

Needs nothing of Spark, so that it can be written where Spark is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SPEC: Final = "spark-pipeline.yml"
CATALOG: Final = "catalog.conf"
DEFINITIONS: Final = "definitions/queues.py"
RUN: Final = ("spark-pipelines", "--properties-file", CATALOG, "run")
"""The command that runs the project, in its directory."""

_SPEC_TEXT: Final = """\
# A project of Spark Declarative Pipelines. In this directory:
#
#   {run}
#
# reads what is new, and brings all tables up to date; dry-run instead of run only checks it.
# It needs: pip install 'openmsmq[spark]' 'pyspark[pipelines]'
name: {name}

# Where Spark notes how far it has read. Without it, or with another one, it begins anew.
storage: {storage}

configuration:
  spark.sql.session.timeZone: UTC

libraries:
  - glob:
      include: definitions/**
"""

_CATALOG_TEXT: Final = """\
# Tables must be known to the next run, too: this is a catalog in a directory, for one run at a
# time. Where there is a catalog already, use that one instead of this file.
spark.sql.catalogImplementation hive
spark.sql.warehouse.dir {tables}
spark.hadoop.javax.jdo.option.ConnectionURL {catalog}
"""

_DEFINITIONS_TEXT: Final = '''\
"""Which queues are read. More sources, and queues separated by commas, may be added."""

from openmsmq.spark.pipelines.declarative import define

define(
    {{
        # The name under which Spark keeps how far this source was read.
        "{source}": {{
{options}
        }},
    }}
)
'''


def project_files(
    name: str, directory: str, source: str, options: Mapping[str, str]
) -> dict[str, str]:
    """Return the files of a project by their paths in it; `directory` is absolute."""
    lines = "\n".join(
        f'            "{option}": {_text(value)},' for option, value in options.items()
    )
    path = directory.rstrip("/")
    derby = f"jdbc:derby:;databaseName={path}/catalog;create=true"
    return {
        SPEC: _SPEC_TEXT.format(
            name=_scalar(name), storage=_scalar(f"file://{path}/storage"), run=" ".join(RUN)
        ),
        CATALOG: _CATALOG_TEXT.format(
            tables=_property(f"file://{path}/tables"), catalog=_property(derby)
        ),
        DEFINITIONS: _DEFINITIONS_TEXT.format(source=source, options=lines),
    }


def _property(value: str) -> str:
    """Write a text as Java's files of properties have it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _scalar(value: str) -> str:
    """Write a text as YAML has it; in quotes, it knows the same escapes as Python."""
    escaped = value.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{escaped}"'


def _text(value: str) -> str:
    """Write a text as Python has it, a path with backslashes as people read it."""
    is_plain = '"' not in value and not value.endswith("\\") and value.isprintable()
    if not is_plain:
        return repr(value)
    return f'r"{value}"' if "\\" in value else f'"{value}"'
