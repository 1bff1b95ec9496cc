"""What all tests share: the conformance marks, and how Hypothesis and Java run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.java import quick_java

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadGroupScheduling

pytest_plugins = ["tests.conformance.plugin", "pytester"]

# No deadlines, for drawing examples neither: a busy machine is not a defect. In CI the examples are
# the same in every run; `--hypothesis-profile=thorough` looks longer, `fast` (for `make test-fast`)
# less long.
settings.register_profile(
    "openmsmq",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    print_blob=True,
)
settings.register_profile("thorough", settings.get_profile("openmsmq"), max_examples=5_000)
settings.register_profile("fast", settings.get_profile("openmsmq"), max_examples=20)
settings.load_profile("openmsmq")

# Whoever has chosen how Java runs keeps that.
for _variable, _options in quick_java().items():
    os.environ.setdefault(_variable, _options)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """With `--dist loadgroup`, deal files out whole."""
    from tests.scheduling import ByFile

    return ByFile(config, log) if config.getvalue("dist") == "loadgroup" else None
