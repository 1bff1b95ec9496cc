"""What the program around a queue manager measures, and the queue manager then tells."""

from __future__ import annotations

import asyncio
from pathlib import Path

from openmsmq.api import messages as api
from openmsmq.runtime.limits import VITALS_LOOK_MS
from openmsmq.runtime.vitals import VitalSigns
from tests.unit.manager.office import Office


def told(office: Office) -> api.Vitals:
    found: api.Vitals = office.ok(api.GetStatus()).vitals
    return found


def test_what_nobody_has_measured_is_unknown() -> None:
    office = Office()
    assert told(office) == api.Vitals()
    VitalSigns(office.driver.manager).look()
    assert told(office) == api.Vitals()


def test_commits_are_counted_and_the_worst_is_remembered() -> None:
    office = Office()
    signs = VitalSigns(office.driver.manager)
    for took_us in (2_000, 9_000, 3_000):
        signs.committed(took_us * 1_000)
    signs.look()
    found = told(office)
    assert (found.commit_count, found.commit_total_us) == (3, 14_000)
    assert (found.commit_last_us, found.commit_worst_us) == (3_000, 9_000)


def test_the_disk_is_looked_at_and_how_late_the_loop_is(tmp_path: Path) -> None:
    office = Office()
    (tmp_path / "store").write_bytes(b"x" * 100_000)
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 40)

    async def watch() -> None:
        signs = VitalSigns(office.driver.manager)
        signs.watch(tmp_path)
        assert told(office).lag_us == -1
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(1.1 * VITALS_LOOK_MS / 1000, over.set)
        await over.wait()
        signs.look()
        signs.close()

    asyncio.run(watch())
    found = told(office)
    assert found.free_disk_bytes > 0
    assert 100_000 <= found.store_bytes < 10_000_000
    assert found.lag_worst_us >= found.lag_us >= 0


def test_a_store_that_is_gone_is_unknown_and_no_failure(tmp_path: Path) -> None:
    office = Office()

    async def watch() -> None:
        signs = VitalSigns(office.driver.manager)
        signs.watch(tmp_path / "nowhere")
        signs.close()

    asyncio.run(watch())
    assert (told(office).free_disk_bytes, told(office).store_bytes) == (-1, -1)
