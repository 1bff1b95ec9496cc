"""`openmsmq backup` and `openmsmq restore`, as an operator uses them."""

from __future__ import annotations

import pytest

from tests.server_thread import start_server


@pytest.fixture
def stopped(tmp_path):
    with start_server(str(tmp_path / "stopped")):
        pass
    return tmp_path / "stopped"


def test_a_running_queue_manager_is_backed_up_and_put_back(openmsmq, queue, tmp_path):
    openmsmq("send", queue, "--body", "kept", "--recoverable")
    target = tmp_path / "backup"
    done = openmsmq("backup", str(target), "--json").object
    assert done["state"] == "done"
    assert done["directory"] == str(target)
    assert done["size_bytes"] == done["copied_bytes"] > 0
    assert done["problem"] is None
    assert openmsmq("backup", "--json").object == done
    shown = openmsmq("backup").out
    assert str(target) in shown
    assert "done" in shown
    assert "sound" in openmsmq("store", "check", str(target)).out
    report = openmsmq("restore", str(target), "--data", str(tmp_path / "new"), "--json").object
    assert report["name"] == "ALPHA"
    assert report["taken_time"] == done["taken_time"]
    assert report["before"] == ""
    assert "is not empty" in openmsmq.refused("backup", str(target))


def test_what_is_no_place_is_refused_in_a_sentence(openmsmq, tmp_path):
    sentence = openmsmq.refused("backup", "relative/place", code=2)
    assert "absolute path" in sentence
    assert sentence.endswith("relative/place.")
    assert "make it first" in openmsmq.refused("backup", str(tmp_path / "a" / "b"))


def test_a_stopped_queue_manager_is_backed_up_and_put_back(offline, stopped, tmp_path):
    target = tmp_path / "backup"
    found = offline("backup", str(target), "--data", str(stopped), "--json").object
    assert found["directory"] == str(target)
    assert found["size_bytes"] > 0
    said = offline("restore", str(target), "--data", str(tmp_path / "new")).out
    assert "has ALPHA as of" in said
    sentence = offline.refused("restore", str(target), "--data", str(stopped))
    assert "--replace" in sentence
    said = offline("restore", str(target), "--data", str(stopped), "--replace").out
    assert "what was there before is in" in said
    with start_server(str(stopped)):
        assert "leave out --data" in offline.refused(
            "backup", str(tmp_path / "two"), "--data", str(stopped)
        )


@pytest.fixture
def kept(offline, stopped, tmp_path):
    """A back-up."""
    target = tmp_path / "kept"
    offline("backup", str(target), "--data", str(stopped))
    return target


def test_a_back_up_is_compared_with_its_manifest_and_stays_as_it_is(offline, kept, tmp_path):
    for _ in range(2):
        said = offline("store", "check", str(kept)).out
        assert "back-up of" in said
        assert "ALPHA" in said
    found = offline("store", "check", str(kept), "--json").object
    assert (found["sound"], found["backup"]["name"]) == (True, "ALPHA")
    assert found["backup"]["file_count"] > 1
    offline("restore", str(kept), "--data", str(tmp_path / "new"))
    assert "backup" not in offline("store", "check", str(tmp_path / "new"), "--json").object


@pytest.mark.parametrize("name", ["identity.json", "store/format.json"])
def test_a_file_of_a_back_up_that_is_missing_or_changed_is_named(offline, kept, name):
    path = kept / name
    content = path.read_bytes()
    path.write_bytes(content + b" ")
    assert (
        f"{path} has more than {len(content)} bytes"
        in offline("store", "check", str(kept), code=1).err
    )
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert f"{path} is not as it was written" in offline("store", "check", str(kept), code=1).err
    path.unlink()
    assert f"{path} is missing" in offline("store", "check", str(kept), code=1).err
    path.write_bytes(content)
    assert offline("store", "check", str(kept), "--json").object["sound"]


def test_what_came_into_the_store_of_a_back_up_later_is_named(offline, kept):
    added = kept / "store" / "journal-9.log"
    added.write_bytes(b"")
    found = offline("store", "check", str(kept), "--json", code=1)
    assert f"{added} is not in the manifest" in found.err


def test_a_manifest_that_was_changed_is_not_believed(offline, kept):
    path = kept / "manifest.json"
    path.write_text(path.read_text().replace("ALPHA", "OMEGA"))
    assert "is damaged: its checksum is wrong" in offline.refused("store", "check", str(kept))
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "is a link" in offline.refused("store", "check", str(kept))


def test_a_back_up_is_not_compacted(offline, kept):
    assert "is a back-up" in offline.refused("store", "compact", str(kept))
    assert offline("store", "check", str(kept), "--json").object["sound"]


def test_mistakes_are_said_in_sentences(offline, stopped, tmp_path):
    assert "where is the back-up to go" in offline.refused("backup", "--data", str(stopped), code=2)
    assert "there is no store" in offline.refused(
        "backup", str(tmp_path / "x"), "--data", str(tmp_path / "nowhere")
    )
    assert "is no back-up" in offline.refused(
        "restore", str(stopped), "--data", str(tmp_path / "new")
    )
    assert not (tmp_path / "new").exists()
