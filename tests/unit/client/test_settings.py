"""Settings: where a queue manager is."""

from __future__ import annotations

import pickle

import pytest

from openmsmq.client.settings import Settings, made_settings


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("127.0.0.2", ("127.0.0.2", 1802)),
        ("alpha.example:1900", ("alpha.example", 1900)),
        ("::1", ("::1", 1802)),
        ("[::1]", ("::1", 1802)),
        ("[fe80::1]:99", ("fe80::1", 99)),
    ],
)
def test_an_address_names_host_and_port(address: str, wanted: tuple[str, int]) -> None:
    settings = Settings(address=address)
    assert settings.host_and_port == wanted
    assert settings.unix_path is None


@pytest.mark.parametrize(
    ("address", "wanted"),
    [("unix:api.sock", "api.sock"), ("/run/msmq/api.sock", "/run/msmq/api.sock"), ("./s", "./s")],
)
def test_a_path_is_a_unix_socket(address: str, wanted: str) -> None:
    assert Settings(address=address).unix_path == wanted


@pytest.mark.parametrize(
    "address",
    [
        "",
        ":1802",
        "host:http",
        "host:0",
        "host:70000",
        "[::1",
        "[::1]x",
        "a..b",
        f"{'x' * 64}:2103",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        _ = Settings(address=address).host_and_port


def test_settings_cross_processes() -> None:
    settings = Settings(address="alpha:1", token="t", tls="ca.pem", call_timeout_s=3)
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_settings_can_be_changed_by_name() -> None:
    settings = made_settings("alpha", {"token": "t"})
    assert made_settings(settings, {"tls": True}) == Settings(address="alpha", token="t", tls=True)


def test_without_tls_there_is_no_context() -> None:
    assert Settings().tls_context() is None
    assert Settings(tls=True).tls_context() is not None
