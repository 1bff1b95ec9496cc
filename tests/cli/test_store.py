"""`openmsmq store` looks after the store of a queue manager that is stopped."""

from __future__ import annotations

import pytest

from tests.server_thread import start_server


@pytest.fixture
def data(tmp_path):
    with start_server(str(tmp_path / "data")):
        pass
    return tmp_path / "data"


def test_a_sound_store_is_called_sound(offline, data):
    report = offline("store", "check", str(data), "--json").object
    assert report["sound"]
    assert report["record_count"] > 0
    assert report["problems"] == []
    assert "sound" in offline("store", "check", str(data / "store")).out


def test_a_damaged_store_is_called_damaged(offline, data):
    opposite = bytes(byte ^ 0xFF for byte in range(256))
    for path in (data / "store").iterdir():
        content = path.read_bytes()
        path.write_bytes(content[:4096] + content[4096:].translate(opposite))
    result = offline("store", "check", str(data), code=1)
    assert result.err.startswith("openmsmq: ")


def test_a_directory_without_a_store_is_not_called_damaged(offline, tmp_path):
    for _ in range(2):
        sentence = offline.refused("store", "check", str(tmp_path))
        assert sentence == f"there is no store at {tmp_path}: check the path."
    assert list(tmp_path.iterdir()) == []


def test_compacting_keeps_every_record(offline, data):
    before = offline("store", "check", str(data), "--json").object
    report = offline("store", "compact", str(data), "--json").object
    assert report["record_count"] == before["record_count"]
    assert report["after_bytes"] <= report["before_bytes"]
    after = offline("store", "check", str(data), "--json").object
    assert (after["sound"], after["record_count"]) == (True, before["record_count"])
    assert "before" in offline("store", "compact", str(data)).out


@pytest.mark.parametrize("command", ["check", "compact"])
def test_a_store_in_use_is_left_alone(openmsmq, server, command):
    assert "in use" in openmsmq.refused("store", command, str(server.data))


@pytest.mark.parametrize("command", ["check", "compact"])
def test_a_directory_without_a_store_is_named(offline, tmp_path, command):
    assert str(tmp_path) in offline.refused("store", command, str(tmp_path / "nothing"))
