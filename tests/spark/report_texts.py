"""Texts from strangers, for the tests of the report."""

from __future__ import annotations

HOSTILE = "</td></style><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'\x1b[31m\u202e"
