"""Downloads: bytes that a browser keeps as a file and never shows."""

from __future__ import annotations

import re
from typing import Final

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_MAX_CHARACTERS: Final = 80


def attachment(name: str) -> dict[str, str]:
    """Return the headers of a download; of the name, only what is harmless everywhere is kept."""
    safe = _UNSAFE.sub("-", name).strip("-.")[-_NAME_MAX_CHARACTERS:].lstrip("-.") or "message"
    return {
        "Content-Disposition": f'attachment; filename="{safe}"',
        "Content-Type": "application/octet-stream",
        # Should a browser show it all the same, it runs and loads nothing.
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
