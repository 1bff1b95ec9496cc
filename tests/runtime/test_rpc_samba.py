"""Samba's own tests of raw RPC, against our doors: they were written beside Windows.

They run under the system's Python, which has Samba's modules, against a queue manager of this
process. Two things are put in their place before they run: where they come anonymously, they come
as a user (we refuse anonymous callers, and nothing else in these tests depends on it), and an
interface of our own stands in for `netlogon`, whose first call some of them make in fragments.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from openmsmq.model.clock import Instant
from openmsmq.model.limits import RPC_CONTEXTS_MAX_COUNT
from openmsmq.protocol.rpc.states import InterfaceFacts
from openmsmq.remote.mgmt import ServerManagement
from openmsmq.remote.ports import Output, Return
from openmsmq.remote.services import Service
from openmsmq.runtime import service
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.rpc_table import RpcTable
from openmsmq.wire.rpc.syntaxes import Syntax
from tests.server_thread import ServerThread

PYTHON: Final = "/usr/bin/python3"
USER, PASSWORD = "alice", "correct horse battery"
NETLOGON: Final = Syntax.of("12345678-1234-abcd-ef00-01234567cffb", 1)
COUNT: Final = 194

RUNNER: Final = """
import os, re, unittest
import samba.tests.dcerpc.raw_testcase as raw
raw.RawDCERPCTest.get_anon_creds = raw.RawDCERPCTest.get_user_creds
class Result(unittest.TestResult):
    def say(self, test, outcome):
        print("outcome", test._testMethodName, outcome, flush=True)
    def addSuccess(self, test):
        self.say(test, "passed")
    def addFailure(self, test, error):
        self.say(test, "failed")
        print(self._exc_info_to_string(error, test))
    addError = addFailure
names = "samba.tests.dcerpc.raw_protocol"
for suite in unittest.defaultTestLoader.loadTestsFromName(names):
    for test in suite:
        if re.fullmatch(os.environ["TESTS"], test._testMethodName):
            test.run(Result())
"""

OF_KERBEROS: Final = r"test_krb5_.*|test_spnego_multiple_auth_hdr_signing"
"""They have a domain in `tests/directory/test_rpc_kerberos.py`."""

EXCEPTIONS: Final = {
    r"test_lsa_multi_auth_.*|test_assoc_group_(ok2|fail3)": "they need named pipes of SMB",
    OF_KERBEROS: "they need a server of Kerberos",
}
"""Tests that do not pass, and why."""


class Challenged(ServerManagement):
    """Answers every call as `netlogon` does a challenge: eight bytes, and that all is well."""

    def called(self, call: int, operation: int, stub: bytes, now: Instant) -> list[Output]:
        del operation, stub, now
        return [Return(call, bytes(12))]


def why_not() -> str:
    probe = subprocess.run(
        [PYTHON, "-c", "import samba.tests.dcerpc.raw_protocol"], capture_output=True, check=False
    )
    if probe.returncode:
        return "Samba's tests are not installed: run scripts/ensure-samba"
    try:
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((free_address(), 135))
    except PermissionError:
        return "the endpoint mapper uses port 135, which this user may not open"
    return ""


def free_address() -> str:
    """Return a loopback address of this process: port 135 cannot be another one."""
    return f"127.135.{os.getpid() >> 8 & 255}.{os.getpid() & 255 or 1}"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("rpc")
    data = folder / "data"
    data.mkdir(mode=0o700)
    add_account(data / ACCOUNTS_FILE, USER, PASSWORD, administrator=False, now_s=0)
    (folder / "smb.conf").write_text("[global]\nserver role = standalone\n", encoding="utf-8")
    netlogon = Service(NETLOGON, InterfaceFacts(5), "netlogon", lambda _: Challenged((), ""))
    config = ServerConfig(
        data=str(data),
        name="ALPHA",
        address=free_address(),
        api_port=0,
        transfer=False,
        rpc=RpcTable(enabled=True, connections_max=1000, connections_per_peer_max=1000),
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(service, "offered", lambda *_: [netlogon])
        with ServerThread(config):
            yield run_suite(folder, config.address)


def run_suite(folder: Path, address: str, **more: str) -> dict[str, str]:
    """Run the tests that `TESTS` names, all of them without it; return what became of each."""
    environment = {
        **os.environ,
        "TESTS": ".*",
        "SERVER": address,
        "TARGET_HOSTNAME": address,
        "DOMAIN": "WORKGROUP",
        "REALM": "EXAMPLE.TEST",
        "USERNAME": USER,
        "PASSWORD": PASSWORD,
        "SMB_CONF_PATH": str(folder / "smb.conf"),
        "IGNORE_RANDOM_PAD": "1",
        "MAX_NUM_AUTH": str(RPC_CONTEXTS_MAX_COUNT),
        **more,
    }
    ran = subprocess.run(
        [PYTHON, "-c", RUNNER],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    print(ran.stdout, ran.stderr[-2000:])
    return dict(re.findall(r"^outcome (\S+) (\S+)$", ran.stdout, re.MULTILINE))


def excepted(name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in EXCEPTIONS)


def test_all_of_sambas_tests_pass_but_for_the_exceptions(outcomes: dict[str, str]) -> None:
    failed = {name for name, outcome in outcomes.items() if outcome != "passed"}
    assert {name for name in failed if not excepted(name)} == set()
    assert len(outcomes) == COUNT
    assert len(outcomes) - len(failed) == COUNT - sum(map(excepted, outcomes))


def test_every_exception_is_still_one(outcomes: dict[str, str]) -> None:
    passed = {name for name, outcome in outcomes.items() if outcome == "passed"}
    assert {name for name in passed if excepted(name)} == set()
