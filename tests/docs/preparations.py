"""What some pages take for granted: what their reader has before they begin."""

from __future__ import annotations

from typing import Final

CAPTURES: Final = r"""
mkdir traces older
openmsmq serve --name ALPHA --data ./alpha --address 127.0.0.2 --capture traces/talk.pcapng &
openmsmq serve --name BETA --data ./beta --address 127.0.0.3 --capture older/talk.pcapng &
openmsmq --qm 127.0.0.3 queue create 'private$\orders'
openmsmq --qm 127.0.0.2 send 'DIRECT=TCP:127.0.0.3\private$\orders' --body tea --recoverable
openmsmq --qm 127.0.0.3 receive 'private$\orders' --timeout 30
kill %1 %2
wait
"""
"""Captures of some traffic, by both ends."""

WHAT_WINDOWS_SENT: Final = r"""
openmsmq serve --name ALPHA --data ./alpha --address 127.0.0.2 &
cat > sent.py <<'END'
import openmsmq as mq

with mq.connect("127.0.0.2") as manager:
    there = manager.create_queue(r"private$\windows-orders")
    here = manager.create_queue(r"private$\orders", journaling=True)
    for number, customer in ((1, "Ann"), (2, "Bob"), (3, "Eve")):
        body = f"<Order><Number>{number}</Number><Customer>{customer}</Customer></Order>".encode()
        there.send(body, body_type=0, label="order")
        if number != 3:
            here.send(body, body_type=0, label="order")
    for queue in (there, here):
        queue.send(4711)
        queue.send(b"\0\1\0\0\0\xff\xff\xff\xff\1", body_type=768)
    here.receive_many(10, timeout=0)
    here.send("too late", journal_on_failure=True)
    here.purge()
END
python sent.py
"""
"""The copies of which the guide to migration speaks; the new side lacks one of them."""
