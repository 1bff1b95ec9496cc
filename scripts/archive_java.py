"""Archive the classes that Java loads for Spark, into `build/java/spark.jsa`, for the tests.

Each Spark that a test or a page starts loads some ten thousand classes, and checks them. Java maps
them from the archive instead, which takes a fraction of the processor time; what does not fit, such
as an archive for another Spark, it passes over. What the tests make of it stands in
`tests/java.py`.

`spark-submit` runs this file again with `--load`: that loads the classes, and its Java writes the
archive when it ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
TARGET = HOME / "build" / "java" / "spark.jsa"


def load(folder: str) -> None:
    """Do a little of what tests and pages do most: files, joins, counts, and a stream."""
    from openmsmq.spark.session import make_session

    spark = make_session("archive", "local[1]")
    numbers = spark.createDataFrame([(n, f"text {n % 7}") for n in range(20)], "n long, t string")
    numbers.write.partitionBy("t").parquet(f"{folder}/numbers")
    stored = spark.read.parquet(f"{folder}/numbers")
    counts = stored.filter("n > 3").groupBy("t").count().orderBy("t")
    counts.join(stored, "t").selectExpr("sum(n)", "max(current_timestamp())").show()
    query = (
        spark.readStream.schema(numbers.schema)
        .parquet(f"{folder}/numbers")
        .writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/copy")
    )
    query.awaitTermination()
    spark.stop()


def stamp() -> str:
    """Return what the archive depends on: Java, and where Spark is and which."""
    import pyspark

    java = Path(os.environ["JAVA_HOME"], "bin/java") if "JAVA_HOME" in os.environ else "java"
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    return f"{version}{pyspark.__file__} {pyspark.__version__}\n{Path(__file__).read_text()}"


def main() -> int:
    """Make the archive, unless it is there. Nothing needs it: that it is missing is no failure."""
    if sys.argv[1:2] == ["--load"]:
        load(sys.argv[2])
        return 0
    try:
        wanted = stamp()
    except (ImportError, OSError, subprocess.CalledProcessError):
        return 0
    made = TARGET.with_suffix(".made")
    if TARGET.exists() and made.exists() and made.read_text(encoding="utf-8") == wanted:
        return 0
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    # Java ends when half of an archive is there, so it gets its name when it is whole.
    with tempfile.TemporaryDirectory(dir=TARGET.parent) as folder:
        archive = Path(folder, "spark.jsa")
        options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={archive}"
        command = [Path(sys.executable).parent / "spark-submit", __file__, "--load", folder]
        ran = subprocess.run(
            command,
            env=os.environ | {"SPARK_SUBMIT_OPTS": options, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0 or not archive.exists():
            print(f"{ran.stdout}{ran.stderr}\narchive_java: no archive, so Spark starts slowly.",
                  file=sys.stderr)  # fmt: skip
            return 0
        archive.rename(TARGET)
    made.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
