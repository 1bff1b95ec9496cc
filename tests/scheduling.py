"""Which tests go to a worker together, where several workers run them.

A file goes to a worker whole: what its tests share is started once and not once in each worker, and
the plugin, which looks at every part again after each test, has a thousand parts instead of as many
as there are tests. The tests of `SINGLE` are long and share nothing, so that each goes where there
is room. Parts with many tests come first and single tests last, so that the workers end together.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from xdist.scheduler import LoadGroupScheduling

SINGLE: Final = (
    "tests/crash",
    "tests/docs",
    "tests/property",
    "tests/sim",
    "tests/spark",
)
"""Folders of which each test goes to whichever worker is free."""


def together(test: str) -> str:
    """Return the name of the part that a test belongs to, by the name that workers give it."""
    file, _, name = test.partition("::")
    # The plugin writes the mark behind the name; what a test is given may have the sign, too.
    if name.rfind("@") > name.rfind("]"):
        return name.rpartition("@")[2]
    folder = PurePosixPath(file).parents
    return test if any(PurePosixPath(single) in folder for single in SINGLE) else file


class ByFile(LoadGroupScheduling):
    """Deals out what is marked as a group, files, and the tests that go one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)
