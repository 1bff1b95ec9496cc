"""How Java runs in tests: it compiles once and simply, and takes classes from an archive.

A Spark that lives for seconds spends most of its processor time with compiling and with loading
classes. None of that changes what Spark does. What is to be shown as readers have it, README above
all, runs without.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ARCHIVE: Final = Path(__file__).parents[1] / "build" / "java" / "spark.jsa"
"""Made by `scripts/archive_java.py`; without it, Java starts more slowly."""

SIMPLE: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

VARIABLES: Final = ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")
"""The first is read for the Java that is Spark, the other for that which only starts it."""


def quick_java() -> dict[str, str]:
    """Return the variables by which the Spark that is started next is quick."""
    archived = f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds*=off" if ARCHIVE.exists() else ""
    return dict(zip(VARIABLES, (SIMPLE + archived, SIMPLE), strict=True))
