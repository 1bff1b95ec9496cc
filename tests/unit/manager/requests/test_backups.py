"""One back-up at a time; who asks for it hears of its beginning, and anybody how far it is."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.api.program import BackupPhase
from openmsmq.manager.outputs import BackUp, BackupProgress
from openmsmq.model.errors import InsufficientResources
from tests.unit.manager.office import START_S, Office

COPYING = BackupProgress(BackupPhase.COPYING, 0, 100)
DONE = BackupProgress(BackupPhase.DONE, 100, 100)
FAILED = BackupProgress(BackupPhase.FAILED, error=InsufficientResources("the disk is full"))


def begin(office: Office, path: str, app: int | None = None) -> list[str]:
    """Ask for a back-up that is not answered yet; give where the driver is to make one."""
    office.driver.request(office.app if app is None else app, api.BeginBackup(path))
    outputs = office.driver.node.take()
    office.driver.pump()
    assert not office.driver.take_answers()
    return [output.directory for output in outputs if isinstance(output, BackUp)]


def told(office: Office, progress: BackupProgress) -> list[api.AnyReply]:
    """Tell how far the back-up is; give what is answered by that."""
    office.driver.manager.backup_told(progress, office.driver.now)
    office.driver.pump()
    return list(office.driver.take_answers().values())


def test_a_back_up_is_answered_when_it_has_begun_and_watched_until_it_is_done() -> None:
    office = Office()
    state = office.ok(api.GetBackup())
    assert (state.number, state.state) == (0, "none")
    assert begin(office, "/backups/one") == ["/backups/one"]
    assert office.ok(api.GetBackup()).state == "starting"
    [begun] = told(office, COPYING)
    assert isinstance(begun, api.BackupState)
    assert (begun.number, begun.directory, begun.total_bytes) == (1, "/backups/one", 100)
    assert told(office, BackupProgress(BackupPhase.COPYING, 50, 100)) == []
    state = office.ok(api.GetBackup())
    assert (state.copied_bytes, state.begun_time_s, state.ended_time_s) == (50, START_S, 0)
    assert told(office, DONE) == []
    state = office.ok(api.GetBackup())
    assert (state.state, state.ended_time_s, state.problem) == ("done", START_S, "")


def test_a_second_one_is_refused_until_the_first_is_over() -> None:
    office = Office()
    begin(office, "/one")
    for progress in (COPYING, BackupProgress(BackupPhase.CHECKING, 100, 100)):
        assert office.error(api.BeginBackup("/two")) == "MQ_ERROR_SHARING_VIOLATION"
        told(office, progress)
    assert office.error(api.BeginBackup("/two")) == "MQ_ERROR_SHARING_VIOLATION"
    told(office, DONE)
    assert begin(office, "/two") == ["/two"]


def test_one_that_cannot_begin_or_go_on_says_why() -> None:
    office = Office()
    begin(office, "/one")
    [reply] = told(office, FAILED)
    assert isinstance(reply, api.Failed)
    assert reply.detail == "the disk is full"
    begin(office, "/one")
    told(office, COPYING)
    assert told(office, FAILED) == []
    state = office.ok(api.GetBackup())
    assert (state.number, state.state, state.problem) == (2, "failed", "the disk is full")


def test_who_is_gone_is_told_nothing_and_the_back_up_goes_on() -> None:
    office = Office()
    other = office.driver.connect()
    begin(office, "/one", other)
    office.driver.lose(other)
    assert told(office, COPYING) == []
    assert office.ok(api.GetBackup()).state == "copying"


@pytest.mark.parametrize("path", ["", "relative", "/a\0b", "/" + "x" * 2000])
def test_what_is_no_path_from_the_root_on_is_refused(path: str) -> None:
    assert Office().error(api.BeginBackup(path)) == "MQ_ERROR_INVALID_PARAMETER"
