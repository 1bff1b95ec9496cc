"""The examples of MQSRM 4 are what we write, to the byte.

Five are printed in one line, as we write. The others are laid out for readers: there the layout
below is put over what we write. Where an example contradicts the text of the specification, or has
what the text leaves to the writer, ours follows the text (S-3, S-4, S-17). Each such place is
named, and must be in the example; nothing else may differ.
"""

from __future__ import annotations

import re

import pytest

from openmsmq.model.identity import Guid
from openmsmq.wire.srmp.compound import Compound, read_compound, write_compound
from openmsmq.wire.srmp.reading import read_envelope
from openmsmq.wire.srmp.writing import write_envelope
from tests.golden import golden_post

SENDER = Guid.parse("ff3af301-3196-497a-a918-72147c871a13")

OWNER = (
    # An identifier begins with the queue manager that the part of message queuing names, or with
    # zeros where there is no such part (2.2.4.3). 4.1 obeys.
    (r"(uuid:\d+@)[-0-9a-f]{36}(.*<SourceQmGuid>)([-0-9a-f]{36})", r"\1\3\2\3"),
)
NOBODY = ((r"(uuid:1@)[-0-9a-f]{36}", r"\g<1>00000000-0000-0000-0000-000000000000"),)
STREAM = (
    # The element has a small letter in 2.2.5.3, which the others obey.
    ("<Stream ", "<stream "),
    ("</Stream>", "</stream>"),
)
START = (
    # Nobody defines these two.
    (r"\s*<streamReceiptRequest/>", ""),
    (r"(</sendReceiptsTo>)\s*<expiresAt>\d+T\d+</expiresAt>", r"\1"),
)
END = (
    (r"\s*<end/>", ""),  # Nobody defines it either.
)
ONE_PREFIX = (
    # It names a namespace that is named for all elements already, and has another one by a prefix.
    ('xmlns:se= "', 'xmlns:se="'),
    (r'xmlns:rp="http://schemas.xmlsoap.org/rp/"\s*', ""),
    ("<rp:path ", '<path xmlns="http://schemas.xmlsoap.org/rp/" '),
    ("rp:", ""),
    (r'<services xmlns="http://schemas.xmlsoap.org/srmp/"\s*', "<services "),
)
RECEIPTS = (
    # Any order will do for these (2.2.5.2), and ours is that of 2.2.5.2.2 and 2.2.5.2.3.
    (r"(\s*<negativeOnly/>)(\s*<positiveOnly/>)", r"\2\1"),
    (
        r"(\s*<commitmentReceiptRequest>.*</commitmentReceiptRequest>)"
        r"(\s*<deliveryReceiptRequest>.*</deliveryReceiptRequest>)",
        r"\2\1",
    ),
    # A message has one administration queue, that named last (S-17).
    ("private\\$/deliverydone", "private$/receipts"),
)


def laid_out(written: str) -> str:
    """Give each element a line, and each level four spaces, as the examples do."""
    lines: list[str] = []
    depth = 0
    leaf = r"<\w+>[^<]*</\w+>|<se:Body></se:Body>"
    for piece in re.findall(rf"{leaf}|<[^>]+>", written):
        depth -= piece.startswith("</")
        lines.append("    " * depth + piece)
        depth += "/" not in (piece[1], piece[-2]) and not re.fullmatch(leaf, piece)
    return "\r\n".join(lines).replace('envelope/" xmlns', 'envelope/"\r\nxmlns', 1)


@pytest.mark.parametrize(
    "name",
    [
        "mqsrm-4.2-msmq-element",
        "mqsrm-4.3-commitment-receipt",
        "mqsrm-4.3-delivery-receipt",
        "mqsrm-4.4-stream-receipt-1",
        "mqsrm-4.5-multicast",
    ],
)
def test_what_is_printed_in_one_line_is_written(name: str) -> None:
    headers, content = golden_post(name)
    printed = read_compound(headers["content-type"], content).envelope
    assert write_envelope(read_envelope(printed)) == printed


@pytest.mark.parametrize(
    ("name", "number", "differences"),
    [
        ("mqsrm-4.1-simple", 53287, ()),
        ("mqsrm-4.3-both-receipts-wanted", 95692, NOBODY + ONE_PREFIX + RECEIPTS),
        ("mqsrm-4.4-stream-1", 1672, OWNER + STREAM + START),
        ("mqsrm-4.4-stream-2", 1672, OWNER + STREAM),
        ("mqsrm-4.4-stream-3", 1672, OWNER + STREAM + END),
    ],
)
def test_what_is_printed_for_readers_is_written_but_for_its_layout(
    name: str, number: int, differences: tuple[tuple[str, str], ...]
) -> None:
    headers, content = golden_post(name)
    parts = read_compound(headers["content-type"], content)
    expected = parts.envelope.decode()
    for pattern, ours in differences:
        expected, places = re.subn(pattern, ours, expected, flags=re.DOTALL)
        assert places, f"{pattern} is not in the example"
    envelope = laid_out(write_envelope(read_envelope(parts.envelope)).decode())
    assert envelope == expected
    again = write_compound(Compound(envelope.encode(), parts.body), SENDER, number)
    if not differences:
        assert again == (headers["content-type"], content)
