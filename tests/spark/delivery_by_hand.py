"""What became of messages, by brute force: a plain loop over all rows for each message."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

from tests.spark.delivery_rows import Row

REPORT = re.compile(r"(\w{4}):(\w{8}):(\w\w) (sent|received) by")


def kind_of(row: Row) -> str:
    queue, message_class = row["queue"].lower(), row["message_class"]
    negative = message_class >= 0x8000
    if row["message_id"] is None:
        return "nothing"
    if queue.startswith("system$;dead") or (negative and row["dead_letter_queue"]):
        return "dead"
    if message_class == 1:
        return "trace" if REPORT.match(row["label"]) else "nothing"
    if message_class == 0xFF:
        return "nothing"
    if negative or message_class in (2, 0x4000):
        return "acknowledgment"
    if queue == "system$;journal":
        return "sent"
    return "journal" if queue.endswith(";journal") else "waiting"


class Names:
    """What the rows show about names."""

    def __init__(self, rows: list[Row]) -> None:
        meanings: dict[str, set[tuple[str, str | None]]] = defaultdict(set)
        for row in rows:
            kind, manager = kind_of(row), row["queue_manager"]
            if kind in ("waiting", "journal"):
                meanings[row["destination"]].add((manager, row["queue"].split(";")[0]))
                meanings[self.owner(row["destination"])].add((manager, None))
            if kind == "sent" or row["queue"] == "system$;deadxact":
                meanings[row["source_qm"]].add((manager, None))
        self.known = {name: next(iter(m)) for name, m in meanings.items() if len(m) == 1}

    @staticmethod
    def owner(destination: str) -> str:
        found = re.match(r"(?:DIRECT=\w+:|PRIVATE=)([^\\]+)", destination)
        assert found is not None
        return found[1].lower()

    def manager(self, name: str) -> str | None:
        return self.known.get(name, (None, None))[0]


def ends_in_queue(message_class: int | None) -> bool:
    return message_class is not None and message_class >= 0xC000 and message_class != 0xC003


def expected(rows: list[Row], as_of: datetime | None = None) -> dict[str, Row]:
    """Tell the outcome of each message by looking at all rows, again and again."""
    names = Names(rows)
    as_of = as_of or max(row["arrived_time"] for row in rows)
    identifiers = set()
    for row in rows:
        match kind_of(row):
            case "acknowledgment":
                identifiers.add(row["correlation_id"])
            case "trace":
                digits, number, hops, did = REPORT.match(row["label"]).groups()
                if did == "sent" and hops == "00":
                    assert row["source_qm"].upper().startswith(digits)
                    identifiers.add(f"{{{row['source_qm']}}}\\{int(number, 16)}")
            case "nothing":
                pass
            case _:
                identifiers.add(row["message_id"])
    told = {identifier: _about(identifier, rows, identifiers, names) for identifier in identifiers}
    ways = Counter((_short(each["id"]), each["destination"].lower()) for each in told.values())
    for each in told.values():
        if ways[_short(each["id"]), each["destination"].lower()] > 1:
            each["traces"] = []
    return {identifier: _judge(facts, as_of) for identifier, facts in told.items()}


def _about(identifier: str, rows: list[Row], everybody: set[str], names: Names) -> Row:
    own = [row for row in rows if row["message_id"] == identifier]
    own = [row for row in own if kind_of(row) not in ("nothing", "acknowledgment", "trace")]
    acks = [
        row
        for row in rows
        if kind_of(row) == "acknowledgment" and row["correlation_id"] == identifier
    ]
    source = identifier[1:37]
    shorts = _short(identifier)
    traces = [row for row in rows if kind_of(row) == "trace" and row["label"][:13] == shorts]
    left = [row for row in traces if row["source_qm"] == source and ":00 sent" in row["label"]]
    destinations = {row["destination"] for row in own} or {row["response_queue"] for row in acks}
    destinations = destinations or {_target(row) for row in left}
    (destination,) = destinations
    facts: Row = {"own": own, "acks": acks, "id": identifier, "source": source}
    facts["copy"] = own[0] if own else None
    facts["label"] = (own or acks or [{"label": None}])[0]["label"]
    facts["destination"] = destination
    facts["left"] = min((row["sent_time"] for row in left), default=None)
    facts["surely_from"] = names.manager(source)
    there = [row for row in own if kind_of(row) in ("waiting", "journal")]
    place = (there[0]["queue_manager"], there[0]["queue"].split(";")[0]) if there else None
    known = place or names.known.get(destination)
    owner = Names.owner(destination)
    facts["surely_to"] = known[0] if known else names.manager(owner)
    facts["to"] = facts["surely_to"] or owner
    path = destination.split("\\", 1)[1].replace("PRIVATE$", "private$")
    facts["queue"] = (known[1] if known else None) or (
        path if destination.startswith("DIRECT") else destination
    )
    if sum(_short(other) == shorts for other in everybody) > 1:
        traces = [row for row in traces if _target(row).lower() == destination.lower()]
    facts["traces"] = traces
    facts["names"] = names
    return facts


def _short(identifier: str) -> str:
    return f"{identifier[1:5].upper()}:{int(identifier.split(chr(92))[1]):08X}"


def _target(row: Row) -> str:
    found = re.search("<TARGET QUEUE>(.*)</TARGET", row["body"].decode("utf-16-le"))
    assert found is not None
    return found[1]


def _hops(facts: Row) -> list[tuple[int, int, datetime, str]]:
    by_manager: dict[str, list[Row]] = defaultdict(list)
    for row in facts["traces"]:
        by_manager[row["source_qm"]].append(row)
    hops = []
    for manager, reports in by_manager.items():
        count = max(int(row["label"][14:16], 16) for row in reports)
        passed_on = any(" sent by" in row["label"] for row in reports)
        time = min(row["sent_time"] for row in reports)
        hops.append((count, 0 if passed_on else 1, time, manager))
    return sorted(hops)


def _judge(facts: Row, as_of: datetime) -> Row:
    own, acks, copy = facts["own"], facts["acks"], facts["copy"]
    kinds = defaultdict(list)
    for row in own:
        kinds[kind_of(row)].append(row)
    by_class = defaultdict(list)
    for row in acks:
        by_class[row["message_class"]].append(row)
    nacks = sorted(
        (r["sent_time"], r["message_class"], r["message_class_name"])
        for r in acks
        if r["message_class"] >= 0x8000
    )
    nack = nacks[-1] if nacks else (None, None, None)
    letters = [_death(row) for row in kinds["dead"]]
    dead = max(letters, key=lambda d: (d[0], d[1] or 0)) if letters else (None, None, None)
    sent = copy["sent_time"] if copy else None
    hops = _hops(facts)
    came = None
    if hops and hops[-1][1] == 1:
        name = facts["names"].manager(hops[-1][3])
        if name is not None and name == facts["surely_to"]:
            came = hops[-1][2]
    ended = ends_in_queue(nack[1]) or ends_in_queue(dead[1])
    private = facts["destination"].startswith("PRIVATE")
    elsewhere = (
        Names.owner(facts["destination"]) != facts["source"]
        if private
        else bool(facts["surely_from"] and facts["surely_to"])
        and facts["surely_from"] != facts["surely_to"]
    )
    received = bool(by_class[0x4000] or kinds["journal"]) or bool(
        kinds["sent"] and copy["transactional"] and elsewhere
    )
    there = bool(kinds["waiting"])
    reached = received or there or bool(by_class[2]) or ended or came is not None
    waiting = there and not received and not ended
    times = [row["sent_time"] for row in by_class[2]]
    times += [row["arrived_time"] for row in kinds["waiting"]]
    times += [] if came is None else [came]
    ends = [row["sent_time"] for row in by_class[0x4000]]
    ends += [row["arrived_time"] for row in kinds["journal"]]
    sent = sent or facts["left"]
    outcome = _outcome(received, waiting, bool(letters), bool(nacks), reached) or _fate(
        copy, sent, as_of
    )
    reason = {
        "received": "ACK_RECEIVE" if by_class[0x4000] else None,
        "waiting": "ACK_REACH_QUEUE" if by_class[2] else None,
        "reached": "ACK_REACH_QUEUE" if by_class[2] else None,
        "dead_letter": dead[2] or nack[2],
        "failed": nack[2],
    }.get(outcome)
    result = {
        "message_id": facts["id"],
        "label": facts["label"],
        "source_queue_manager": facts["surely_from"] or facts["source"],
        "destination_queue_manager": facts["to"],
        "destination_queue": facts["queue"],
        "sent_time": sent,
        "priority": copy and copy["priority"],
        "transactional": copy and copy["transactional"],
        "size_bytes": copy and len(copy["body"]),
        "outcome": outcome,
        "reason": reason,
        "arrived": reached,
        "acknowledge": copy and copy["acknowledge"],
        "in_doubt": bool(letters or nacks) and (received or waiting or (reached and not ended)),
        "reached_time": min(times, default=None),
        "received_time": min(ends, default=None),
        "dead_letter_reason": (dead[2] or nack[2]) if letters else None,
        "found_in": sorted({f"{row['queue_manager']}\\{row['queue']}" for row in own}),
    }
    for name in ("reach", "receive"):
        time = result["reached_time" if name == "reach" else "received_time"]
        known = time is not None and sent is not None
        result[f"latency_{name}_s"] = (time - sent).total_seconds() if known else None
    result["path"] = _path(facts, hops, result, reached)
    return result


def _death(row: Row) -> tuple[datetime, int | None, str | None]:
    if row["message_class"] >= 0x8000:
        return row["arrived_time"], row["message_class"], row["message_class_name"]
    within_s = row["time_to_be_received_s"]
    waited = row["arrived_time"] - row["sent_time"]
    if within_s is not None and waited >= timedelta(seconds=within_s):
        return row["arrived_time"], 0xC002, "NACK_RECEIVE_TIMEOUT"
    return row["arrived_time"], None, None


def _outcome(received: bool, waiting: bool, dead: bool, nack: bool, reached: bool) -> str | None:
    claims = {
        "received": received,
        "waiting": waiting,
        "dead_letter": dead,
        "failed": nack,
        "reached": reached,
    }
    return next((name for name, holds in claims.items() if holds), None)


def _fate(copy: Row | None, sent: datetime | None, as_of: datetime) -> str:
    if copy is None or sent is None:
        return "in_transit"
    reach, receive = copy["time_to_reach_queue_s"], copy["time_to_be_received_s"]
    age_s = (as_of - sent).total_seconds()
    limits = [limit for limit in (reach, receive) if limit is not None]
    if not limits or age_s <= min(limits):
        return "in_transit"
    if copy["acknowledge"] & 1:
        return "lost"
    overdue = copy["acknowledge"] & 2 and receive is not None and age_s > receive
    return "lost" if overdue else "unknown"


def _path(facts: Row, hops: list[Any], result: Row, reached: bool) -> list[tuple[str, Any]]:
    names, to = facts["names"], facts["to"]
    path = [(result["source_queue_manager"], result["sent_time"])]
    between = [hop for hop in hops if hop[3] != facts["source"]]
    for hop in between:
        name = names.manager(hop[3])
        if name is None and hop is between[-1] and hop[1] == 1 and reached:
            name = to
        path.append((name or hop[3], hop[2]))
    if reached and path[-1][0] != to:
        path.append((to, result["reached_time"]))
    return path
