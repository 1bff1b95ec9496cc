"""`openmsmq peer`."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

from openmsmq.model.peers import PeerPolicy
from openmsmq.runtime.config.peer_rules import PeerRules
from openmsmq.runtime.config.session_tls_table import SessionTlsTable
from openmsmq.runtime.sessions.trust import SessionTrust


def test_a_certificate_is_made_that_a_queue_manager_can_use(offline, tmp_path: Path) -> None:
    made = offline(
        "peer", "certificate", "--name", "SHOP", "--out", str(tmp_path), "--days", "9", "--json"
    ).object
    certificate, key = tmp_path / "session.pem", tmp_path / "session.key"
    assert key.stat().st_mode & 0o777 == 0o600
    der = ssl.PEM_cert_to_DER_cert(certificate.read_text())
    assert made["fingerprint"] == hashlib.sha256(der).hexdigest()
    assert made["names"] == ["shop"]
    table = SessionTlsTable(certificate="session.pem", key="session.key")
    trust = SessionTrust(table, str(tmp_path), PeerRules(PeerPolicy()), lambda: 0)
    assert trust.own.fingerprint == made["fingerprint"]
    assert trust.own.not_after_s - trust.own.not_before_s == 9 * 24 * 3600 + 3600


def test_the_fingerprint_of_any_certificate_is_shown(offline, tmp_path: Path) -> None:
    offline("peer", "certificate", "--name", "shop.example", "--out", str(tmp_path))
    file = str(tmp_path / "session.pem")
    facts = offline("peer", "fingerprint", file, "--json").object
    shown = offline("peer", "fingerprint", file).out
    assert facts["fingerprint"] in shown
    assert "shop.example" in shown


def test_a_certificate_that_others_may_know_is_replaced_only_on_demand(
    offline, tmp_path: Path
) -> None:
    command = ("peer", "certificate", "--name", "SHOP", "--out", str(tmp_path))
    offline(*command)
    before = (tmp_path / "session.pem").read_bytes()
    assert "--replace replaces it" in offline(*command, code=2).err
    assert (tmp_path / "session.pem").read_bytes() == before
    offline(*command, "--replace")
    assert (tmp_path / "session.pem").read_bytes() != before


def test_what_is_no_certificate_is_said_so(offline, tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_text("nothing")
    assert "has no certificate in PEM" in offline("peer", "fingerprint", str(file), code=2).err
    absent = offline("peer", "fingerprint", str(tmp_path / "absent"), code=2).err
    assert "cannot read" in absent
    wrong = offline("peer", "certificate", "--name", "", "--out", str(tmp_path), code=2).err
    assert "is no name for a certificate" in wrong
