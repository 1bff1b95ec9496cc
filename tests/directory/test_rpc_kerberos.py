"""Samba's own tests of raw RPC that need Kerberos, against our doors, with a real domain."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.model.identity import Guid
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.rpc_table import RpcTable
from openmsmq.wire.rpc import management, remote_read
from tests.directory.samba import PASSWORD, REALM, DomainController
from tests.directory.test_kerberos import Realm
from tests.runtime.test_rpc_samba import OF_KERBEROS, PYTHON, free_address, run_suite, why_not
from tests.server_thread import ServerThread

pytestmark = pytest.mark.directory

COUNT = 10


ASK_DOOR = """
import sys
from samba import credentials, param
from samba.dcerpc import mgmt
address, host, user, password, realm, configuration = sys.argv[1:]
settings = param.LoadParm()
settings.load(configuration)
who = credentials.Credentials()
who.guess(settings)
who.set_username(user)
who.set_password(password)
who.set_realm(realm)
who.set_domain("MQ")
who.set_kerberos_state(credentials.MUST_USE_KERBEROS)
binding = f"ncacn_ip_tcp:{address}[2103,seal,krb5,target_hostname={host}]"
found = mgmt.mgmt(binding, settings, who).inq_if_ids()
found = found[0] if isinstance(found, tuple) else found
print(*(each.id.uuid for each in found.if_id))
"""
"""Samba's client asks a door what it has; for strange interfaces it proves nothing."""


@pytest.fixture(scope="module")
def realm(controller: DomainController, tmp_path_factory: pytest.TempPathFactory) -> Realm:
    folder = tmp_path_factory.mktemp("realm")
    return Realm(controller, folder, user="rpc-caller", service="rpc-server", host="beta.mq.test")


@pytest.fixture
def address(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where a queue manager has doors of RPC for the domain."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    monkeypatch.setenv("KRB5_CONFIG", str(realm.file))
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    shutil.copy(realm.keytab, data / "rpc.keytab")
    (data / "rpc.keytab").chmod(0o600)
    config = ServerConfig(
        data=str(data),
        name="ALPHA",
        address=free_address(),
        api_port=0,
        transfer=False,
        log_level="error",
        rpc=RpcTable(enabled=True, keytab="rpc.keytab"),
    )
    (tmp_path / "smb.conf").write_text(
        f"[global]\nworkgroup = MQ\nrealm = {REALM}\n", encoding="utf-8"
    )
    with ServerThread(config):
        yield config.address


def test_sambas_client_comes_in_with_kerberos_at_privacy(
    address: str, realm: Realm, tmp_path: Path
) -> None:
    words = (address, realm.host, realm.user, PASSWORD, REALM, str(tmp_path / "smb.conf"))
    ran = subprocess.run(
        [PYTHON, "-c", ASK_DOOR, *words],
        env={**os.environ, "KRB5CCNAME": f"FILE:{tmp_path / 'tickets'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    found = {Guid.parse(each) for each in ran.stdout.split()}
    assert {remote_read.INTERFACE, management.INTERFACE} < found, ran.stderr[-2000:]


def test_sambas_tests_of_kerberos_pass(address: str, realm: Realm, tmp_path: Path) -> None:
    outcomes = run_suite(
        tmp_path,
        address,
        TESTS=OF_KERBEROS,
        TARGET_HOSTNAME=realm.host,
        DOMAIN="MQ",
        REALM=REALM,
        USERNAME=realm.user,
        PASSWORD=PASSWORD,
        KRB5CCNAME=f"FILE:{tmp_path / 'tickets'}",
        KRB5_CONFIG=os.environ["KRB5_CONFIG"],
    )
    assert {name for name, outcome in outcomes.items() if outcome != "passed"} == set()
    assert len(outcomes) == COUNT
    assert all(re.fullmatch(OF_KERBEROS, name) for name in outcomes)
