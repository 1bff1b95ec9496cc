"""The table [peers] of a configuration file."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from openmsmq.model.identity import Guid
from openmsmq.model.limits import PEER_SILENCE_S
from openmsmq.model.peers import PeerPolicy, PeerRule
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.peer_table import read_peers
from tests.unit.runtime.config.loaded import load_config

GUID = "2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11"
PRINT = "AB:" * 31 + "AB"


def read(text: str) -> PeerPolicy:
    table: Any = tomllib.loads(text)["peers"]
    return read_peers(table, "f.toml")


def test_a_file_has_rules_and_what_holds_for_all(tmp_path):
    file = tmp_path / "openmsmq.toml"
    file.write_text(
        f'''
[peers]
strict = true
silence_s = 60

[peers.office]
identifiers = "{GUID}"
addresses = ["10.1.0.7", "10.2.0.0/16"]
routes = true

[peers.partner]
certificates = ["{PRINT}"]
certificate_names = ["msmq.partner.example"]
tls = true

[peers.noisy]
addresses = "10.9.0.0/16"
refuse = true
''',
        encoding="utf-8",
    )
    assert load_config({"data": "d"}, {}, str(file)).parameters.peers == PeerPolicy(
        rules=(
            PeerRule(
                name="office",
                identifiers=(Guid.parse(GUID),),
                addresses=("10.1.0.7", "10.2.0.0/16"),
                routes=True,
            ),
            PeerRule(
                name="partner",
                certificates=("ab" * 32,),
                certificate_names=("msmq.partner.example",),
                tls=True,
            ),
            PeerRule(name="noisy", addresses=("10.9.0.0/16",), refuse=True),
        ),
        strict=True,
        silence_s=60,
    )


def test_without_settings_nobody_is_kept_out():
    assert read("[peers]") == PeerPolicy(rules=(), strict=False, silence_s=PEER_SILENCE_S)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[peers]\nstrickt = true", r"\[peers\] .* has no 'strickt'.*strict"),
        ("[peers]\nstrict = 1", r"\[peers\] is wrong"),
        ("[peers]\nsilence_s = 0", r"\[peers\] is wrong"),
        ("[peers.a]", r"\[peers.a\] names nobody"),
        ("[peers.a]\nadresses = '10.0.0.1'", r"\[peers.a\] .* has no 'adresses'.*addresses"),
        ("[peers.a]\naddresses = 'office'", r"'office' is no IP address and no network"),
        ("[peers.a]\naddresses = '10.1.0.7/16'", r"'10.1.0.7/16' is no IP address and no network"),
        ("[peers.a]\nidentifiers = ['x']", r"identifiers is wrong: 'x' is not a GUID"),
        ("[peers.a]\ncertificates = ['ab']", r"'ab' is no SHA-256 fingerprint"),
        (f"[peers.a]\nidentifiers = '{GUID}'\nroutes = true", "by addresses or certificates"),
        ("[peers.a]\naddresses = '10.0.0.1'\nrefuse = true\nroutes = true", "leave the other keys"),
        ("[peers.a]\naddresses = 7", r"\[peers.a\] is wrong"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, words):
    with pytest.raises(ConfigError, match=f"f.toml: .*{words}" if "[" not in words[:3] else words):
        read(text)
