"""The table [security]: what it allows, and what it says of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.manager.config import SecurityConfig
from openmsmq.model.message import AuthenticationLevel, HashAlgorithm
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.security_table import SecurityTable
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.providers import ADVANCED, BASE, ENHANCED
from openmsmq.wire.keys import SessionAlgorithm
from scripts.configuration_tables import reference_rows
from tests.unit.runtime.config.loaded import load_config


def read(folder: Path, text: str) -> SecurityTable:
    file = folder / "openmsmq.toml"
    file.write_text(f'data = "{folder}"\n[security]\n{text}\n', encoding="utf-8")
    return load_config({}, {}, str(file)).security


def test_without_a_table_the_policy_is_the_safe_one() -> None:
    assert SecurityTable().config == SecurityConfig()
    assert SecurityTable().config.policy == SecurityPolicy()
    assert SecurityTable().providers == (ADVANCED,)


def test_old_algorithms_are_allowed_by_name(tmp_path: Path) -> None:
    table = read(
        tmp_path,
        'hashes = ["sha512", "md5"]\nciphers = ["aes256", "rc4"]\ntrust_unsigned_senders = true\n'
        'signatures = ["2.0", "3.0"]\n'
        "key_lifetime_days = 30\nkey_retention_days = 7\naccept_40_bit_rc2 = true",
    )
    policy = table.config.policy
    assert policy.hashes == {HashAlgorithm.SHA512, HashAlgorithm.MD5}
    assert policy.ciphers == {SessionAlgorithm.AES_256, SessionAlgorithm.RC4}
    assert policy.trust_unsigned_senders
    assert policy.signatures == {
        AuthenticationLevel.SIGNATURE_20,
        AuthenticationLevel.SIGNATURE_30,
    }
    assert not policy.reject_rc2_40_bit
    assert table.config.key_lifetime_s == 30 * 24 * 3600
    assert table.config.key_retention_s == 7 * 24 * 3600


@pytest.mark.parametrize(
    ("text", "providers"),
    [
        ('ciphers = ["rc4"]', (ENHANCED,)),
        ('ciphers = ["aes128", "rc2"]', (ADVANCED, ENHANCED)),
        ('ciphers = ["rc4"]\nsmallest_key_bits = 512', (ENHANCED, BASE)),
        ("smallest_key_bits = 512", (ADVANCED,)),
    ],
)
def test_there_is_a_key_for_what_is_accepted_and_no_other(
    tmp_path: Path, text: str, providers: tuple[object, ...]
) -> None:
    assert read(tmp_path, text).providers == providers


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('hashes = ["sha3"]', r"\[security\] is wrong: .*sha3"),
        ("hashes = []", r"\[security\] is wrong: .*>= 1"),
        ("cipher = 1", r"\[security\] is wrong: it has no 'cipher'; did you mean 'ciphers'"),
        ("key_bits = 512", r"\[security\] is wrong: .*>= 1024"),
        ("key_bits = 2050", r"\[security\] is wrong: .*multiple of 16"),
        ("smallest_key_bits = 100", r"\[security\] is wrong: .*>= 512"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, text)


def test_it_is_a_table(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text(f'data = "{tmp_path}"\nsecurity = 1\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"begin it with a line \[security\]"):
        load_config({}, {}, str(file))


def test_the_reference_page_has_all_options() -> None:
    page = Path(__file__).parents[4] / "docs/reference/configuration.md"
    assert reference_rows(SecurityTable) in page.read_text(encoding="utf-8")


def test_new_keys_must_not_be_too_short_to_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give longer new keys, too"):
        read(tmp_path, "smallest_key_bits = 4096")
    assert read(tmp_path, "smallest_key_bits = 4096\nkey_bits = 4096").key_bits == 4096


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('hashes = ["sha1", "md4"]', "md4"),
        ('ciphers = ["aes256", "rc2"]', "rc2"),
        ('ciphers = ["rc4"]\nsmallest_key_bits = 512', "a key of 512 bits"),
    ],
)
def test_what_needs_a_package_that_is_missing_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, what: str
) -> None:
    monkeypatch.setattr("openmsmq.security.legacy.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=rf"{what} needs .* pip install 'openmsmq\[legacy\]'"):
        read(tmp_path, text)
    assert read(tmp_path, 'ciphers = ["aes256", "rc4"]').providers == (ADVANCED, ENHANCED)
