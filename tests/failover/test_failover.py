"""A primary is killed, cut off or stands still under load: nothing is lost, doubled or reordered.

`make failover FAILOVERS=100` has it happen as often as that; the numbers are printed.
"""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import time
from functools import partial
from pathlib import Path

import pytest

from tests.failover.load import QUEUE, Sender, check, create_queue, take_all
from tests.failover.pair import SHARED, THIRD, Member, Pair, running_pair
from tests.runtime.computers import wait_for

FAILOVERS_COUNT = int(os.environ.get("FAILOVERS", "5"))
TAKEN_OVER_WITHIN_S = 5.0
NOT_YET = 75


def kill(pair: Pair, member: Member) -> float:
    """End the process at once; give when."""
    at_s = time.perf_counter()
    member.end(signal.SIGKILL)
    assert pair.other(member).is_ready.wait(60), pair.other(member).computer.log[-3000:]
    return at_s


def stop(pair: Pair, member: Member) -> float:
    """Let it stand still, and wake when another one is the primary: it has to notice."""
    at_s = time.perf_counter()
    member.send(signal.SIGSTOP)
    assert pair.other(member).is_ready.wait(60), pair.other(member).computer.log[-3000:]
    member.send(signal.SIGCONT)
    assert member.wait() == NOT_YET, member.computer.log[-3000:]
    return at_s


def cut(pair: Pair, member: Member) -> float:
    """Pull its cable, and plug it in again when another one is the primary."""
    at_s = time.perf_counter()
    pair.lab.cut(member.name, "lan")
    assert pair.other(member).is_ready.wait(60), pair.other(member).computer.log[-3000:]
    pair.lab.mend(member.name, "lan")
    assert member.wait() == NOT_YET, member.computer.log[-3000:]
    return at_s


def cut_power(pair: Pair, member: Member) -> float:
    """Take the power of the whole side, its server of PostgreSQL included; it comes back.

    Somebody, whom a test cannot be, promotes the other server and gives it a follower again.
    """
    at_s = time.perf_counter()
    member.lose_power()
    pair.databases.fail_over()
    pair.databases.copy()
    assert pair.other(member).is_ready.wait(60), pair.other(member).computer.log[-3000:]
    pair.databases.wait_until_it_follows()
    return at_s


def lose(pair: Pair, member: Member) -> float:
    """Lose the whole side with its disks, for good; a new computer begins from a back-up."""
    at_s = cut_power(pair, member)
    pair.restore(member)
    return at_s


def goes_on(sender: Sender, before: int) -> bool:
    """Whether more was acknowledged since."""
    return len(sender.acknowledged) > before + 3


FAULTS = (kill, stop, cut, cut_power, lose)


@pytest.mark.timeout(120 + 60 * FAILOVERS_COUNT)
def test_nothing_is_lost_doubled_or_reordered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took_s: dict[str, list[float]] = {fault.__name__: [] for fault in FAULTS}
    with running_pair(tmp_path) as pair:
        third = str(pair.third.data / "api.sock")
        create_queue(pair.sockets)
        create_queue(third)
        there = Sender(pair.sockets, rf"DIRECT=TCP:{THIRD}\{QUEUE}")
        here = Sender(third, rf"DIRECT=TCP:{SHARED}\{QUEUE}")
        for fault in itertools.islice(itertools.cycle(FAULTS), FAILOVERS_COUNT):
            member = pair.primary
            assert member is not None
            before = len(there.acknowledged)
            wait_for(partial(goes_on, there, before))
            at_s = fault(pair, member)
            took_s[fault.__name__].append(pair.promoted_s - at_s)
            member.start("--standby")
            member.wait_until_it_follows()
        before = len(there.acknowledged)
        wait_for(partial(goes_on, there, before))
        there.stop()
        here.stop()
        arrived_there = take_all(third, lambda found: there.acknowledged[-1] in found)
        arrived_here = take_all(pair.sockets, lambda found: here.acknowledged[-1] in found)
    check(arrived_there, there.acknowledged)
    check(arrived_here, here.acknowledged)
    with capsys.disabled():
        sent = len(there.acknowledged) + len(here.acknowledged)
        print(f"\n{FAILOVERS_COUNT} failovers, {sent} acknowledged, none lost, doubled, reordered")
        for name, times_s in took_s.items():
            if times_s:
                median = statistics.median(times_s)
                print(
                    f"  {name}: taken over in {median:.2f} s (median), {max(times_s):.2f} s at most"
                )
    assert statistics.median(took_s["kill"]) < TAKEN_OVER_WITHIN_S
