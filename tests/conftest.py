"""What all tests share: the conformance marks, and how Hypothesis runs."""

from __future__ import annotations

import os

from hypothesis import settings

pytest_plugins = ["tests.conformance.plugin", "pytester"]

# No deadlines: a busy machine is not a defect. In CI the examples are the same in every run;
# `--hypothesis-profile=thorough` looks longer, `fast` (for `make test-fast`) less long.
settings.register_profile(
    "openmsmq", deadline=None, derandomize="CI" in os.environ, print_blob=True
)
settings.register_profile("thorough", settings.get_profile("openmsmq"), max_examples=5_000)
settings.register_profile("fast", settings.get_profile("openmsmq"), max_examples=20)
settings.load_profile("openmsmq")
