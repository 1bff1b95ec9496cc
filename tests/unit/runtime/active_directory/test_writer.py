"""A server that fails in the middle of a write is an error, and the rest of it is not tried."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from openmsmq.model.access import QueueAccess
from openmsmq.model.errors import DirectoryFailed, NoDirectory
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import QueueManagerInfo, Site
from openmsmq.runtime.active_directory.mapping.descriptors import (
    QUEUE_RIGHTS,
    Descriptor,
    decode,
    encode,
    translate_from_directory,
)
from openmsmq.runtime.active_directory.mapping.entries import Entry
from openmsmq.runtime.active_directory.session import Session
from openmsmq.runtime.active_directory.settings import ServerSettings
from openmsmq.runtime.active_directory.writer import Writer
from tests.unit.runtime.active_directory.as_served import (
    COMPUTER_NAME,
    MANAGER,
    MANAGER_NAME,
    ROOT,
    SELF,
    computer,
    manager_entry,
    served,
    without,
)

CONFIGURATION = f"CN=Configuration,{ROOT}"


class Failing:
    """Stands for a session whose server fails at a moment that no real one can be made to."""

    configuration, domain, base = CONFIGURATION, ROOT, ROOT

    def __init__(self, *working: str) -> None:
        self._working = working
        self.asked: list[str] = []

    def __getattr__(self, request: str) -> Any:
        async def answer(*_: object) -> None:
            self.asked.append(request)
            if request not in self._working:
                raise NoDirectory("it has gone")

        return answer


@pytest.mark.spec("MQDSSM-3.1.6.1.1.3-08", "MQDSSM-3.1.6.7.1.9-03", "MQDSSM-3.1.6.7.1.9-16")
def test_a_site_that_cannot_be_asked_for_is_an_error_of_the_settings() -> None:
    session = Failing()
    manager = QueueManagerInfo(
        identifier=MANAGER, computer_name="QM1", sites=(SELF,), routing_server=True
    )
    settings = ServerSettings(cast("Session", session))
    with pytest.raises(NoDirectory):
        asyncio.run(settings.write(manager, COMPUTER_NAME))
    assert session.asked == ["find"]


@pytest.mark.spec("MQDSSM-3.1.6.2.1.3-03", "MQDSSM-3.1.6.7.1.9-10")
def test_settings_that_cannot_be_looked_for_are_not_deleted() -> None:
    session = Failing()
    settings = ServerSettings(cast("Session", session))
    with pytest.raises(NoDirectory):
        asyncio.run(settings.delete(MANAGER))
    plain = QueueManagerInfo(identifier=MANAGER, computer_name="QM1", sites=(SELF,))
    with pytest.raises(NoDirectory):
        asyncio.run(settings.write(plain, COMPUTER_NAME))
    assert session.asked == ["search", "search"]


@pytest.mark.spec("MQDSSM-3.1.6.12-13", "MQDSSM-3.1.6.12-14", "MQDSSM-3.1.6.12-15")
@pytest.mark.parametrize(
    ("working", "error"),
    [(("add", "find"), NoDirectory), (("add", "find", "get"), DirectoryFailed)],
)
def test_what_cannot_be_read_after_it_was_created_is_an_error(
    working: tuple[str, ...], error: type[Exception]
) -> None:
    writer = Writer(cast("Session", Failing(*working)))
    with pytest.raises(error):
        asyncio.run(writer.write([Site(identifier=NIL_GUID, name="Here")]))


@pytest.mark.spec("MQDSSM-3.1.6.17-09", "MQDSSM-3.1.6.17-10", "MQDSSM-3.1.6.17-11")
def test_rights_that_cannot_be_read_are_not_changed() -> None:
    name = f"CN=q,{MANAGER_NAME}"
    queue = without(served(name, "mSMQQueue", {}), "nTSecurityDescriptor")
    above = {entry.name: entry for entry in (manager_entry(), computer())}

    class Reading(Failing):
        async def find(self, _: object) -> Entry:
            return queue

        async def get(self, name: str) -> Entry:
            return above[name]

    session = Reading()
    wanted = QueueProperties(
        identifier=SELF,
        path_name="QM1\\q",
        kind=QueueKind.PUBLIC,
        manager=MANAGER,
        security_descriptor=encode(Descriptor()),
    )
    with pytest.raises(DirectoryFailed, match="nTSecurityDescriptor"):
        asyncio.run(Writer(cast("Session", session)).write([wanted]))
    assert session.asked == []


ACCOUNT_SID = bytes.fromhex("01050000000000051500000001000000020000000300000051040000")


@pytest.mark.spec(
    "MQDMPR-3.1.7.1.3.1-01",
    "MQDMPR-3.1.7.1.3.1-02",
    "MQDMPR-3.1.7.1.3.1-03",
    "MQDMPR-3.1.7.1.3.1-16",
)
@pytest.mark.parametrize("account", ["known", "without its identifier", "not there"])
def test_a_new_queue_gives_rights_to_the_account_of_its_computer_if_that_is_known(
    account: str,
) -> None:
    """It is read as the entry above that of the queue manager."""
    added: list[Any] = []
    asked: list[str] = []

    class Creating(Failing):
        async def find(self, identifier: object) -> Entry | None:
            return manager_entry() if identifier == MANAGER else None

        async def get(self, name: str) -> Entry | None:
            asked.append(name)
            known = {"objectSid": ACCOUNT_SID} if account == "known" else {}
            return None if account == "not there" else computer(**known)

        async def add(self, *entry: object) -> None:
            added.append(entry)
            raise NoDirectory("nothing more of this is looked at")

    wanted = QueueProperties(
        identifier=NIL_GUID, path_name="QM1\\q", kind=QueueKind.PUBLIC, manager=MANAGER
    )
    with pytest.raises(NoDirectory):
        asyncio.run(Writer(cast("Session", Creating())).write([wanted]))
    assert asked == [COMPUTER_NAME]
    [(name, _, attributes, _)] = added
    assert name == f"CN=q,{MANAGER_NAME}"
    [descriptor] = attributes["nTSecurityDescriptor"]
    assert (ACCOUNT_SID in descriptor) is (account == "known")
    entries = decode(translate_from_directory(descriptor, QUEUE_RIGHTS)).entries or ()
    rights = [entry.rights for entry in entries if entry.user == ACCOUNT_SID]
    wanted_rights = QueueAccess.GET_PROPERTIES | QueueAccess.GET_PERMISSIONS
    assert [each & wanted_rights for each in rights] == (
        [wanted_rights] if account == "known" else []
    )
