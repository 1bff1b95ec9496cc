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
    head, _, content = golden_request(name).partition(b"\r\n\r\n")
    pairs = (line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    return {name.lower(): value for name, value in pairs}, content


def golden_request(name: str) -> bytes:
    """Read a post as it is sent."""
    return Path(__file__).with_name(f"{name}.http").read_bytes().replace(b"\n", b"\r\n")


def golden_capture(name: str) -> Path:
    """Return the file of a capture.

    `http-and-multicast`: ALPHA (10.97.7.1) posts to a queue of BETA (10.97.7.2) that is not there,
    then two messages of a stream, and sends two in three parts each to 239.1.1.1:8001. tshark took
    it at ALPHA's network card; link layers and what does not belong to it were left out.
    """
    return Path(__file__).with_name(f"{name}.pcapng")
