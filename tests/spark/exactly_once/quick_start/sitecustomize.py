"""Python runs this at its start when it finds it on its path: the workers of tests begin sooner.

Spark puts its own sources in front as an archive, without compiled files: each new worker compiles
them, which takes three times as long as all the rest. The installed package is the same.
"""

from __future__ import annotations

import sys

sys.path[:] = [path for path in sys.path if not path.endswith("pyspark.zip")]
