"""The domain controller of these tests, and two clients of it: ours, and ldap3 to check it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.directory.domain import Domain
from tests.directory.samba import DomainController, why_not


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DomainController]:
    """Provision a domain once in a run, and run its controller."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    controller = DomainController(tmp_path_factory.mktemp("domain"))
    controller.provision()
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture(scope="session")
def domain(controller: DomainController) -> Iterator[Domain]:
    """The domain with the parts of an enterprise that every test needs."""
    domain = Domain(controller)
    domain.furnish()
    yield domain
    domain.close()
