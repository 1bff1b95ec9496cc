"""Formatters: values to message bodies and back, chosen by name.

`active_x` is the default and writes what COM and `ActiveXMessageFormatter` write; `xml` is
`XmlMessageFormatter`; `json` is UTF-8 JSON; `bytes` leaves bodies as they are. Other formatters
join with `register_formatter`.
"""

from __future__ import annotations

from typing import Final

from openmsmq.client.formatters.active_x import ActiveXFormatter
from openmsmq.client.formatters.base import Formatter, FormatterError
from openmsmq.client.formatters.plain import BytesFormatter, JsonFormatter
from openmsmq.client.formatters.xml import XmlFormatter

__all__ = [
    "DEFAULT_FORMATTER",
    "Formatter",
    "FormatterError",
    "find_formatter",
    "register_formatter",
]

DEFAULT_FORMATTER: Final = ActiveXFormatter()

_BY_NAME: Final[dict[str, Formatter]] = {}


def register_formatter(formatter: Formatter) -> None:
    """Make a formatter known by its name, in place of the one that had the name before."""
    _BY_NAME[formatter.name] = formatter


def find_formatter(wanted: str | Formatter | None) -> Formatter:
    """Find a formatter by name; a formatter is given back as it is, None means the default."""
    if wanted is None:
        return DEFAULT_FORMATTER
    if not isinstance(wanted, str):
        return wanted
    try:
        return _BY_NAME[wanted]
    except KeyError:
        known = ", ".join(sorted(_BY_NAME))
        raise ValueError(f"no formatter is called {wanted!r}; there are {known}") from None


for _formatter in (DEFAULT_FORMATTER, XmlFormatter(), JsonFormatter(), BytesFormatter()):
    register_formatter(_formatter)
