"""Samba's own tests of raw RPC that need Kerberos, against our doors, with a real domain."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.rpc_table import RpcTable
from tests.directory.samba import PASSWORD, REALM, DomainController
from tests.directory.test_kerberos import Realm
from tests.runtime.test_rpc_samba import OF_KERBEROS, free_address, run_suite, why_not
from tests.server_thread import ServerThread

pytestmark = pytest.mark.directory

COUNT = 10


def test_sambas_tests_of_kerberos_pass(
    controller: DomainController, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    realm = Realm(
        controller, tmp_path, user="rpc-caller", service="rpc-server", host="beta.mq.test"
    )
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
        outcomes = run_suite(
            tmp_path,
            config.address,
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
