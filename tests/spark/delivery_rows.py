"""Rows of queues for the tests of delivery: an enterprise of three, drawn at random."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from openmsmq.model.message import MessageClass, message_class_name
from openmsmq.spark.schema import NAMES, arrow_schema

START_S = 1_700_000_000
Row = dict[str, Any]

IDENTITIES = {
    "ALPHA": "a1f0c0de-0000-4000-8000-00000000000a",
    # The first four digits are those of ALPHA: trace reports tell them apart by destination only.
    "BETA": "a1f0beef-0000-4000-8000-00000000000b",
    "GAMMA": "9c3d0000-0000-4000-8000-00000000000c",
}
ADDRESSES = {"ALPHA": "10.0.0.1", "BETA": "10.0.0.2", "GAMMA": "10.0.0.3"}
QUEUES = ("private$\\orders", "private$\\ledger")
NUMBERS = {"private$\\orders": "1f", "private$\\ledger": "20"}


def moment(time_s: float | None) -> datetime | None:
    return None if time_s is None else datetime.fromtimestamp(time_s, UTC)


def row(queue_manager: str, queue: str, arrived_s: int, **values: Any) -> Row:
    """Return a whole row; what is not said has a plain value."""
    message_class = values.pop("message_class", 0)
    found: Row = dict.fromkeys(NAMES)
    found |= {
        "queue_manager": queue_manager,
        "queue": queue,
        "arrived_time": moment(arrived_s),
        "label": "",
        "body": b"body",
        "priority": 3,
        "transactional": False,
        "acknowledge": 0,
        "message_class": int(message_class),
        "message_class_name": message_class_name(message_class),
    }
    unknown = values.keys() - found.keys() - {"sent_s"}
    assert not unknown, unknown
    found["sent_time"] = moment(values.pop("sent_s", None))
    found |= values
    return found


def table(rows: list[Row]) -> pa.Table:
    """Return rows as the data source would."""
    return pa.Table.from_pylist(rows, schema=arrow_schema())


class Letter:
    """One message of the enterprise: what is true of it, and the rows that it leaves behind."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.source, self.to = rng.choice(list(IDENTITIES)), rng.choice(list(IDENTITIES))
        self.queue = rng.choice(QUEUES)
        self.number = number
        self.id = f"{{{IDENTITIES[self.source]}}}\\{number}"
        self.sent_s = START_S + rng.randrange(0, 20_000)
        self.transactional = rng.random() < 0.4
        self.ask = rng.choice([0, 0x04, 0x05, 0x0E, 0x0F])
        self.reach_s = rng.choice([None, 60, 345_600])
        self.receive_s = rng.choice([None, None, 90, 100_000])
        self.destination = self._destination()
        self.own_dead_letters = rng.random() < 0.2
        self.label = f"label {number}"
        self.size = rng.randrange(0, 50)

    def _destination(self) -> str:
        form = self.rng.choice(["tcp", "os", "private"])
        if form == "private":
            return f"PRIVATE={IDENTITIES[self.to]}\\{NUMBERS[self.queue]}"
        host = ADDRESSES[self.to] if form == "tcp" else self.to.lower()
        if form == "os" and self.to != "ALPHA" and self.rng.random() < 0.5:
            # Two computers share a name.
            host = "cluster"
        kind = "TCP" if form == "tcp" else "OS"
        return f"DIRECT={kind}:{host}\\{self.queue.replace('private', 'PRIVATE')}"

    def copy(self, queue_manager: str, queue: str, arrived_s: int, **values: Any) -> Row:
        return row(
            queue_manager,
            queue,
            arrived_s,
            message_id=self.id,
            source_qm=IDENTITIES[self.source],
            sent_s=self.sent_s,
            label=self.label,
            body=b"x" * self.size,
            priority=self.number % 8,
            transactional=self.transactional,
            destination=self.destination,
            acknowledge=self.ask,
            time_to_reach_queue_s=self.reach_s,
            time_to_be_received_s=self.receive_s,
            dead_letter_queue="private$\\dead" if self.own_dead_letters else None,
            **values,
        )

    def acknowledgment(self, reason: MessageClass, teller: str, at_s: int) -> Row:
        return row(
            self.source,
            "private$\\admin",
            at_s + 1,
            message_id=f"{{{IDENTITIES[teller]}}}\\{1_000_000 + self.number}",
            source_qm=IDENTITIES[teller],
            sent_s=at_s,
            label=self.label,
            correlation_id=self.id,
            message_class=reason,
            destination=f"DIRECT=OS:{self.source}\\PRIVATE$\\admin",
            response_queue=self.destination,
        )

    def trace(self, who: str, did: str, hops: int, at_s: int) -> Row:
        digits = IDENTITIES[self.source][:4].upper()
        body = f"<MESSAGE ID>{self.number:08X}</MESSAGE ID>\r\n"
        body += f"<TARGET QUEUE>{self.destination}</TARGET QUEUE>\r\n"
        return row(
            "ALPHA",
            "traces",
            at_s + 2,
            message_id=f"{{{IDENTITIES[who]}}}\\{2_000_000 + self.number}",
            source_qm=IDENTITIES[who],
            sent_s=at_s,
            label=f"{digits}:{self.number:08X}:{hops:02X} {did} by {IDENTITIES[who].upper()} at …",
            body=body.encode("utf-16-le"),
            message_class=MessageClass.REPORT,
        )


def draw_rows(seed: int, count: int) -> list[Row]:
    """Draw what the queues of an enterprise hold; many rows are missing, some come twice."""
    rng = random.Random(seed)
    rows: list[Row] = []
    known: set[str] = set()
    for number in range(1, count + 1):
        # Some numbers are those of another queue manager's message.
        letter = Letter(rng, number - 1 if rng.random() < 0.3 else number)
        if letter.id in known:
            continue
        known.add(letter.id)
        rows += [found for found in _left_behind(rng, letter) if rng.random() < 0.6]
    rows += rng.sample(rows, len(rows) // 10)
    rows += _oddities()
    rng.shuffle(rows)
    return rows


def _oddities() -> list[Row]:
    """Rows that say nothing, and must not stop anything."""
    someone = {"message_id": f"{{{IDENTITIES['BETA']}}}\\9", "source_qm": IDENTITIES["BETA"]}
    return [
        row("ALPHA", "private$\\orders", START_S, error="cut off", body=b"LIOR"),
        row("ALPHA", "traces", START_S, message_class=1, label="hello", **someone),
        row(
            "ALPHA",
            "traces",
            START_S,
            message_class=1,
            label="FFFF:0000FFFF:07 received by NOBODY at no time",
            body=b"\x00\xd8<TARGET QUEUE>\xff",
            sent_s=START_S,
            **someone,
        ),
        row("ALPHA", "private$\\order_queue$", START_S, message_class=0xFF, **someone),
    ]


def _left_behind(rng: random.Random, letter: Letter) -> list[Row]:
    source, to, now_s = letter.source, letter.to, letter.sent_s
    rows = [letter.copy(source, "system$;journal", now_s + 1)]
    way = [name for name in IDENTITIES if name not in (source, to)][: rng.randrange(2)]
    if rng.random() < 0.5:
        rows.append(letter.trace(source, "sent", 0, now_s))
        for name in way:
            now_s += rng.randrange(0, 5)
            rows.append(letter.trace(name, "received", 1, now_s))
            rows.append(letter.trace(name, "sent", 1, now_s + 1))
    arrival = rng.choice(["there", "there", "refused", "late", "gone"])
    reached_s = now_s + rng.randrange(0, 100)
    if arrival == "gone":
        return rows
    if arrival != "there":
        reason, where = rng.choice(
            {
                "refused": [(MessageClass.NACK_QUEUE_EXCEEDS_QUOTA, to)],
                "late": [
                    (MessageClass.NACK_REACH_QUEUE_TIMEOUT, source),
                    (MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER, source),
                ],
            }[arrival]
        )
        rows.append(letter.acknowledgment(reason, where, reached_s))
        rows.append(_dead(letter, where, reason, reached_s))
        if arrival == "refused" or rng.random() < 0.5:
            return rows
        # In doubt: it arrived after all.
    rows.append(letter.trace(to, "received", len(way), reached_s))
    rows.append(letter.acknowledgment(MessageClass.ACK_REACH_QUEUE, to, reached_s))
    subqueue = rng.choice(["", "", ";poison"])
    rows.append(letter.copy(to, f"{letter.queue}{subqueue}", reached_s))
    ended_s = reached_s + rng.randrange(0, 1_000)
    end = rng.choice(["received", "waiting", "purged", "outlived"])
    if end == "received":
        rows.append(letter.acknowledgment(MessageClass.ACK_RECEIVE, to, ended_s))
        rows.append(letter.copy(to, f"{letter.queue};journal", ended_s))
    elif end == "purged":
        reason = MessageClass.NACK_QUEUE_PURGED
        rows.append(letter.acknowledgment(reason, to, ended_s))
        rows.append(_dead(letter, to, reason, ended_s))
    elif end == "outlived":
        # Other systems leave the class as it was.
        rows.append(_dead(letter, to, MessageClass.NORMAL, ended_s))
    return rows


def _dead(letter: Letter, where: str, reason: MessageClass, at_s: int) -> Row:
    queue = "system$;deadxact" if letter.transactional else "system$;deadletter"
    if letter.own_dead_letters and reason is not MessageClass.NORMAL:
        queue = "private$\\dead"
    if letter.transactional:
        where = letter.source
    return letter.copy(where, queue, at_s, message_class=reason)
