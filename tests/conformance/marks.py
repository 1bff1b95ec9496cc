"""Marks for tests that show many statements of one section."""

from __future__ import annotations

import pytest


def shows(section: str, *numbers: int) -> pytest.MarkDecorator:
    """Return the mark of a test that shows statements of a section, such as `MQSRM-2.2.4`."""
    return pytest.mark.spec(*(f"{section}-{number:02d}" for number in numbers))
