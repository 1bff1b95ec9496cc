"""Packets printed in the specifications, and vectors built by hand.

Packets are hexadecimal text. The posts of MQSRM 4 are text with its line breaks as `\\n`; in the
posts they are CRLF. The specification prints them without indentation: with four spaces for each
level, 4.1 and 4.3 have the very lengths that they state, and 4.5 has in one line. In 4.2 and the
receipts the stated lengths are one or two bytes more than what is printed, and in 4.4, whose
`streamId` has other digits than when it was counted, 14 to 16 less; there the lengths are those of
what is printed.
"""

from __future__ import annotations

from pathlib import Path


def golden(name: str) -> bytes:
    """Read one of the files beside this one."""
    return bytes.fromhex(Path(__file__).with_name(f"{name}.hex").read_text())


def golden_post(name: str) -> tuple[dict[str, str], bytes]:
    """Read a post: its headers by their names in lower case, and what they announce."""
    data = Path(__file__).with_name(f"{name}.http").read_bytes().replace(b"\n", b"\r\n")
    head, _, content = data.partition(b"\r\n\r\n")
    pairs = (line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    return {name.lower(): value for name, value in pairs}, content
