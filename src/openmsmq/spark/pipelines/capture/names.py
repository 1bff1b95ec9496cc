"""Which capture files are meant by what a person names. Needs nothing of Spark."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import Final

from openmsmq.spark.errors import SparkSideError

FILES_MAX_COUNT: Final = 100_000
_SUFFIXES: Final = (".pcapng", ".pcap", ".cap")


def has_scheme(name: str) -> bool:
    """Whether a name is for Spark to resolve, such as `s3a://bucket/file`."""
    return "://" in name


def find_files(names: Iterable[str]) -> list[str]:
    """Return the files that are meant by names of files, directories and patterns, each once.

    A directory stands for the captures in it, by the endings of their names; rotated captures
    that end in a number are found, too. A name with a scheme, such as `s3a://`, is left to Spark.
    """
    found: dict[str, None] = {}
    for name in names:
        expanded = [name] if has_scheme(name) else _expand(name)
        if not expanded:
            raise SparkSideError(f"there is no capture {name}: name files, directories or patterns")
        found.update(dict.fromkeys(expanded))
    if len(found) > FILES_MAX_COUNT:
        raise SparkSideError(
            f"{len(found)} captures are more than {FILES_MAX_COUNT}: read them in several runs"
        )
    return list(found)


def _expand(name: str) -> list[str]:
    if os.path.isdir(name):
        inside = sorted(os.path.join(name, entry) for entry in os.listdir(name))
        return [path for path in inside if _is_capture_name(path) and os.path.isfile(path)]
    if os.path.exists(name):
        return [name]
    return sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))


def _is_capture_name(path: str) -> bool:
    return path.lower().rstrip("0123456789").endswith(_SUFFIXES)
