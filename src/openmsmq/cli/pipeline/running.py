"""How the pipelines start Spark, and what they say when something goes wrong there."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"

MasterOption = Annotated[
    str,
    typer.Option(
        "--master",
        metavar="URL",
        envvar="OPENMSMQ_SPARK_MASTER",
        help="Where Spark runs: local[*] on all cores here, spark://host:7077 on a cluster.",
    ),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
]


@contextlib.contextmanager
def spark_session(
    name: str, master: str, conf: Sequence[str] | None, *, few: bool = False
) -> Iterator[SparkSession]:
    """Start Spark for a command and stop it after; errors of Spark end it with a sentence.

    `few` says that the command has few rows to work on.
    """
    settings = dict(_setting(text) for text in conf or ())
    _require_spark()
    # Loading Spark takes a second or two, which only these commands pay.
    from openmsmq.spark.errors import SparkSideError, sentence_in
    from openmsmq.spark.session import SPARK_ERRORS, make_session

    with progress("starting Spark"):
        session = make_session(f"openmsmq pipeline {name}", master, settings, few=few)
    try:
        yield session
    except SparkSideError as error:
        fail(_sentence(str(error)))
    except SPARK_ERRORS as error:
        text = str(error)
        fail(_sentence(f"Spark: {sentence_in(text) or text.strip().splitlines()[0]}"))
    finally:
        session.stop()


@contextlib.contextmanager
def checking() -> Iterator[None]:
    """Check options before Spark is started for nothing; what is wrong ends the command."""
    try:
        from openmsmq.spark.errors import SparkSideError

        try:
            yield
        except SparkSideError as error:
            fail(_sentence(str(error)))
    except ImportError:
        # Who starts Spark says what is missing.
        return


def require_new_directory(path: str, option: str = "") -> None:
    """Refuse to write into a directory that has something; `option` is what has named it."""
    if os.path.isfile(path) or (os.path.isdir(path) and os.listdir(path)):
        fail(f"{option}{path} is there already: name a directory that is new or empty.")


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        fail(f"--conf {text}: write KEY=VALUE, such as spark.executor.memory=4g.")
    return key, value


def _require_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        fail("pipelines need Spark: pip install 'openmsmq[spark]'.")
    home = os.environ.get("JAVA_HOME", "")
    if not (home and os.access(os.path.join(home, "bin", "java"), os.X_OK)) and not shutil.which(
        "java"
    ):
        fail("Spark needs Java 17: on Debian, apt-get install openjdk-17-jre-headless.")
