from __future__ import annotations

import pytest

from openmsmq.model.clock import Instant


def test_an_instant_cannot_be_changed():
    with pytest.raises(AttributeError):
        Instant(0, 0).ticks_ms = 1  # type: ignore[misc]
