"""Signed and encrypted messages between two processes, as a person sends them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openmsmq.client.messages.certificates import Certificate
from openmsmq.model.errors import InvalidParameter, UnsupportedFormatName
from openmsmq.model.message import AuthenticationLevel, PrivacyLevel
from tests.runtime.computers import Computer, neighbours, running, wait_for
from tests.runtime.scripted_engine import free_port

SECRET = "only for headquarters"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("office")
    # A directory server listens for those who look for it, on the port of sessions, by UDP, too.
    pings = free_port("127.0.0.2", "127.0.0.3")
    clerk, headquarters = neighbours(folder, "CLERK", "HQ", ping_port=pings)
    clerk.options = ("--directory-server",)
    headquarters.options = ("--directory", clerk.qm, "--directory-poll-s", "1")
    with running(clerk), running(headquarters):
        yield clerk, headquarters


@pytest.fixture(scope="module")
def certificate(office: tuple[Computer, Computer], tmp_path_factory: pytest.TempPathFactory) -> str:
    file = str(tmp_path_factory.mktemp("home") / "certificate.pem")
    clerk, headquarters = office
    clerk.command("certificate", "create", "--certificate", file, "--bits", "2048")
    [told] = clerk.objects("certificate", "register", "--certificate", file)
    assert len(told["certificates"]) == 1
    # The copy of headquarters hears of it by itself.
    wait_for(lambda: headquarters.objects("certificate", "list")[0]["certificates"])
    return file


def only_message(computer: Computer, queue: str) -> dict[str, object]:
    wait_for(lambda: computer.objects("peek", queue))
    [message] = computer.objects("receive", queue)
    return message


def test_a_person_signs_and_encrypts_and_the_queue_demands_both(
    office: tuple[Computer, Computer], certificate: str
) -> None:
    clerk, headquarters = office
    queue = r"private$\secret"
    headquarters.command("queue", "create", queue, "--authenticate", "--privacy", "body")
    with headquarters.connect() as manager:
        name = manager.names(queue).private_name
    wait_for(lambda: clerk.objects("key", "show", headquarters.identifier))
    clerk.command(
        "send", name, "--body", SECRET, "--recoverable", "--sign", "--certificate", certificate,
        "--encrypt",
    )  # fmt: skip
    message = only_message(headquarters, queue)
    assert message["text"] == SECRET
    assert message["authentication"] == AuthenticationLevel.SIGNATURE_30.name
    assert message["privacy"] == PrivacyLevel.ADVANCED
    assert message["sender_sid"] == clerk.objects("whoami")[0]["user"]
    for store in (clerk.data, headquarters.data):
        for key in (store / "keys").glob("*"):
            assert key.stat().st_mode & 0o077 == 0
    assert not any(
        SECRET.encode("utf-16-le") in file.read_bytes()
        for file in (clerk.data / "store").rglob("*")
        if file.is_file()
    ), "the body is ciphertext in the files of its sender"


@pytest.mark.parametrize("version", ["2.0", "exact", "best"])
@pytest.mark.parametrize("hash_name", ["sha512", "sha256", "sha1"])
def test_each_kind_of_signature_is_verified(
    office: tuple[Computer, Computer], certificate: str, version: str, hash_name: str
) -> None:
    clerk, headquarters = office
    queue = rf"private$\signed-{version}-{hash_name}"
    headquarters.command("queue", "create", queue, "--authenticate")
    clerk.command(
        "send", headquarters.queue(queue), "--body", "1", "--count", "3", "--sign",
        "--certificate", certificate, "--signature", version, "--hash", hash_name,
    )  # fmt: skip
    wait_for(lambda: len(headquarters.objects("peek", queue, "--count", "3")) == 3)
    wanted = "SIGNATURE_20" if version == "2.0" else "SIGNATURE_30"
    found = headquarters.objects("peek", queue, "--count", "3")
    assert {message["authentication"] for message in found} == {wanted}


def test_a_signature_of_msmq_10_is_not_enough(
    office: tuple[Computer, Computer], certificate: str
) -> None:
    clerk, headquarters = office
    queue = r"private$\not-1.0"
    headquarters.command("queue", "create", queue, "--authenticate")
    for version in ("1.0", "2.0"):
        clerk.command(
            "send", headquarters.queue(queue), "--body", version, "--sign",
            "--certificate", certificate, "--signature", version,
        )  # fmt: skip
    assert only_message(headquarters, queue)["text"] == "2.0"


def test_several_queues_get_one_signature(
    office: tuple[Computer, Computer], certificate: str
) -> None:
    clerk, headquarters = office
    queues = [r"private$\first", r"private$\second"]
    for queue in queues:
        headquarters.command("queue", "create", queue, "--authenticate")
    with clerk.connect() as manager:
        target = manager.queue(",".join(map(headquarters.queue, queues)))
        target.send("to both", certificate=Certificate.load(certificate))
    for queue in queues:
        assert only_message(headquarters, queue)["authentication"] == "SIGNATURE_30"


def test_new_keys_are_used_and_what_is_under_way_is_still_read(
    office: tuple[Computer, Computer],
) -> None:
    clerk, headquarters = office
    queue = r"private$\renewed"
    headquarters.command("queue", "create", queue, "--privacy", "body")
    with headquarters.connect() as manager:
        name = manager.names(queue).private_name
    [before] = headquarters.objects("key", "show")
    with clerk.connect() as manager:
        target = manager.queue(name)
        target.send("with the old key", encrypt=True)
        headquarters.command("key", "renew")
        [after] = headquarters.objects("key", "show")
        assert after["sha256"] != before["sha256"]
        wait_for(lambda: clerk.objects("key", "show", headquarters.identifier) == [after])
        # This client still has the old key, and may use it.
        target.send("with the old key again", encrypt=True)
    with clerk.connect() as manager:
        manager.queue(name).send("with the new key", encrypt=True)
    wait_for(lambda: len(headquarters.objects("peek", queue, "--count", "3")) == 3)
    headquarters.kill()
    headquarters.start()
    assert len(list((headquarters.data / "keys").glob("encryption-*.pem"))) == 2
    assert headquarters.objects("key", "show") == [after]


@pytest.mark.spec("MQQB-3.1.7.1.5-03")
def test_what_cannot_be_encrypted_says_what_to_do(
    office: tuple[Computer, Computer], tmp_path: Path
) -> None:
    clerk, headquarters = office
    refused = pytest.raises(UnsupportedFormatName, match="name the queue by PUBLIC= or PRIVATE=")
    with clerk.connect() as manager, refused:
        manager.queue(headquarters.queue(r"private$\x")).send("1", encrypt=True)
    with pytest.raises(InvalidParameter, match="cannot read"):
        Certificate.load(tmp_path / "nothing.pem")
    bare = tmp_path / "bare.pem"
    bare.write_text("nothing")
    with pytest.raises(InvalidParameter, match="has no private key"):
        Certificate.load(bare)


def test_a_local_message_that_wants_privacy_is_taken_as_it_is(
    office: tuple[Computer, Computer],
) -> None:
    clerk, _ = office
    clerk.command("queue", "create", r"private$\here", "--privacy", "body")
    clerk.command("send", r"private$\here", "--body", "plain", code=1)
    clerk.command("send", r"private$\here", "--body", "plain", "--encrypt")
    [message] = clerk.objects("receive", r"private$\here")
    assert message["text"] == "plain"


def test_a_removed_certificate_is_gone(office: tuple[Computer, Computer], tmp_path: Path) -> None:
    clerk, _ = office
    file = str(tmp_path / "other.pem")
    clerk.command("certificate", "create", "--certificate", file, "--bits", "2048", "--name", "X")
    clerk.command("certificate", "create", "--certificate", file, code=2)
    clerk.command("certificate", "register", "--certificate", file)
    [listed] = clerk.objects("certificate", "list")
    digest = Certificate.load(file).digest.hex()
    assert digest in {each["digest"] for each in listed["certificates"]}
    clerk.command("certificate", "remove", digest)
    assert digest not in json.dumps(clerk.objects("certificate", "list"))
    clerk.command("certificate", "remove", digest, code=1)


def test_what_would_sign_needs_to_be_told_to(
    office: tuple[Computer, Computer], certificate: str
) -> None:
    """A message of which its sender believes that it is signed must not go without."""
    clerk, _ = office
    for option in (("--certificate", certificate), ("--hash", "sha1"), ("--signature", "1.0")):
        clerk.command("send", r"private$\anything", "--body", "1", *option, code=2)
