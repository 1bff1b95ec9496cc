"""The command as a whole: where it connects, how it fails, what it documents."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading

import pytest

from openmsmq.cli import app as program
from openmsmq.cli.options.connecting import EXIT_CODES
from scripts.cli_reference import cli_reference
from tests.cli.conftest import ServerProcess, command_line, environment
from tests.contracts.certificates import write_certificate
from tests.server_thread import start_server


def test_status_says_who_answers(openmsmq, server):
    found = openmsmq("status", "--json").object
    assert found["manager_name"] == "ALPHA"
    assert found["address"] == server.address
    assert found["connection_count"] >= 1
    assert found["uptime_s"] >= 0
    assert openmsmq("status").out.startswith(f"ALPHA at {server.address}\n")


def test_the_option_is_stronger_than_the_variable(openmsmq, server):
    with start_server(str(server.data.parent / "beta"), name="BETA") as beta:
        address = f"{beta.host}:{beta.port}"
        assert openmsmq("--qm", address, "status", "--json").object["manager_name"] == "BETA"
    assert openmsmq("status", "--json").object["manager_name"] == "ALPHA"


@pytest.mark.parametrize("form", ["{}", "unix:{}"])
def test_a_unix_socket_is_an_address(openmsmq, server, form):
    address = form.format(server.data / "api.sock")
    assert openmsmq("--qm", address, "status", "--json").object["manager_name"] == "ALPHA"


def test_a_token_is_taken_from_a_file_or_a_variable(openmsmq, tmp_path, monkeypatch):
    token = tmp_path / "token"
    token.write_text("open sesame, please\n", encoding="utf-8")
    token.chmod(0o600)
    with start_server(str(tmp_path / "data"), token_file=str(token)) as guarded:
        address = f"{guarded.host}:{guarded.port}"
        sentence = openmsmq.refused("--qm", address, "status")
        assert "MQ_ERROR_ACCESS_DENIED" in sentence
        openmsmq("--qm", address, "--token-file", str(token), "status")
        monkeypatch.setenv("OPENMSMQ_TOKEN", "open sesame, please")
        openmsmq("--qm", address, "status")


def test_a_token_file_that_cannot_be_read_is_named(openmsmq):
    assert "nowhere.token" in openmsmq.refused("--token-file=nowhere.token", "status", code=2)


def test_certificates_that_cannot_be_used_are_named(openmsmq, tmp_path):
    assert "nowhere.pem" in openmsmq.refused("--ca=nowhere.pem", "status", code=2)
    (tmp_path / "empty.pem").write_text("", encoding="utf-8")
    assert "empty.pem" in openmsmq.refused(f"--ca={tmp_path / 'empty.pem'}", "status", code=2)


def test_tls_with_a_server_that_has_none_is_explained(openmsmq, server):
    sentence = openmsmq.refused("--tls", "status", code=4)
    assert sentence.startswith(f"Port 1802 of {server.address} does not speak TLS: leave out --tls")
    assert "MQ_ERROR_SERVICE_NOT_AVAILABLE" in sentence


def test_a_server_that_wants_tls_is_explained(openmsmq, tmp_path):
    certificate = write_certificate(tmp_path / "alpha.pem")
    with start_server(str(tmp_path / "data"), tls_cert=certificate) as guarded:
        address = f"{guarded.host}:{guarded.port}"
        sentence = openmsmq.refused("--qm", address, "status", code=4)
        assert sentence.startswith(f"Port {guarded.port} of {guarded.host} speaks only TLS: ")
        assert "give --tls, or --ca FILE" in sentence
        openmsmq("--qm", address, "--ca", certificate, "status")


def test_a_server_that_hangs_up_may_want_tls(offline):
    with socket.create_server(("127.0.0.1", 0)) as rude:

        def hang_up() -> None:
            for _ in range(2):
                rude.accept()[0].close()

        answering = threading.Thread(target=hang_up)
        answering.start()
        address = f"127.0.0.1:{rude.getsockname()[1]}"
        assert "--tls or --ca FILE" in offline.refused("--qm", address, "status", code=4)
        answering.join()


@pytest.mark.slow
@pytest.mark.parametrize("address", ["127.0.99.99", "127.0.99.99:4711"])
def test_nobody_there_is_explained_with_what_to_do(offline, address):
    sentence = offline.refused("--qm", address, "status", code=4)
    assert f"No queue manager answers at {address}: connection refused" in sentence
    assert "openmsmq serve --data DIRECTORY --address 127.0.99.99" in sentence
    assert "MQ_ERROR_SERVICE_NOT_AVAILABLE" in sentence


@pytest.mark.slow
def test_a_socket_that_is_not_there_is_explained(offline, tmp_path):
    sentence = offline.refused("--qm", str(tmp_path / "api.sock"), "status", code=4)
    assert f"openmsmq serve --data {tmp_path}" in sentence


@pytest.mark.slow
def test_the_data_directory_is_told_from_its_socket(openmsmq, server):
    assert f"{server.data}/api.sock" in openmsmq.refused(f"--qm={server.data}", "status", code=4)


@pytest.mark.slow
def test_the_port_of_queue_managers_is_not_that_of_applications(offline):
    sentence = offline.refused("--qm", "127.0.99.99:1801", "status", code=4)
    assert "applications use 1802: give --qm 127.0.99.99." in sentence


def test_a_host_that_is_not_known_is_not_one_to_serve_at(offline):
    sentence = offline.refused("--qm", "nowhere.invalid", "status", code=4)
    assert "Check the name" in sentence
    assert "serve" not in sentence


@pytest.mark.parametrize("address", ["host:port", "127.0.0.1:70000", ":1802", "[::1"])
def test_an_address_that_is_none_is_refused(offline, address):
    assert "is no address" in offline.refused("--qm", address, "status", code=2)


def test_wrong_arguments_are_one_sentence_that_names_the_help(offline):
    assert offline.refused("recieve", "x", code=2).startswith("No such command 'recieve'")
    assert offline.refused("receive", code=2).endswith("openmsmq receive --help says more.")
    assert "--colour" in offline.refused("receive", "q", "--colour", code=2)


def test_without_a_command_the_help_is_shown(offline):
    assert "receive" in offline(code=2).out
    assert "receive" in offline("--help").out


def test_the_help_shows_no_value_where_an_option_takes_none(offline):
    for command in ([], ["queue"], ["send"], ["queue", "acl", "grant"], ["serve"]):
        assert "bool" not in offline(*command, "--help").out


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill(openmsmq, tmp_path):
    mortal = ServerProcess(tmp_path / "data")
    to = ("--qm", mortal.address)
    openmsmq(*to, "queue", "create", r"private$\orders", "--transactional")
    sent = [
        openmsmq(*to, "send", r"private$\orders", "--body", str(n), "--transactional").out.strip()
        for n in range(3)
    ]
    mortal.kill()
    openmsmq.refused(*to, "status", code=4)
    mortal.start()
    try:
        found = openmsmq(*to, "receive", r"private$\orders", "--all", "--json").objects
        assert [message["message_id"] for message in found] == sent
    finally:
        mortal.stop()


def test_the_program_runs_on_its_own(server):
    done = subprocess.run(
        command_line("--qm", server.address, "status", "--json"),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"ALPHA"' in done.stdout


def test_a_shell_can_complete_commands():
    done = subprocess.run(
        [sys.executable, "-m", "openmsmq.cli.app"],
        env={
            **environment(),
            "_OPENMSMQ_COMPLETE": "complete_bash",
            "COMP_WORDS": "openmsmq queue ",
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert {"create", "list", "export"} <= set(done.stdout.split())


def test_the_reference_has_every_command_and_exit_code():
    page = cli_reference()
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    for command in ("status", "send", "receive", "peek", "journal", "deadletter", "queue move"):
        assert command in headings
    for code in EXIT_CODES:
        assert f"| {code} |" in page
    assert "`--time-to-be-received SECONDS`" in page


def named(found):
    return {each.name for each in (*found.registered_commands, *found.registered_groups)}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["status"], "status"),
        (["status", "--help"], "status"),
        (["queue", "list"], "queue"),
        (["--qm", "send", "queue", "status"], "queue"),
    ],
)
def test_only_the_command_that_isasked_for_is_made(arguments, name):
    found = program.asked_for(program.app, arguments)
    assert named(found) == {name}
    assert found.registered_callback is program.app.registered_callback


@pytest.mark.parametrize(
    "arguments",
    ["", "--help", "--help send", "sned send", "--qm", "--qm send", "--tls send"],
)
def test_help_and_what_is_misspelt_have_all_commands(arguments):
    assert program.asked_for(program.app, arguments.split()) is program.app


def test_what_is_misspelt_is_set_right_though_another_command_follows(offline):
    assert "'send'" in offline.refused("sned", "status", code=2)
    assert "--qm" in offline("--help").out
