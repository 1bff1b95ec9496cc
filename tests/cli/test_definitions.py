"""`openmsmq definitions`: queues to a file and back, once and again, and never more open."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import CommandLine, ServerProcess

ORDERS, BILLS = r"private$\orders", r"private$\bills"


@pytest.fixture(scope="module")
def own_server(tmp_path_factory):
    """A queue manager of this module's own: what it defines is all of its queues."""
    process = ServerProcess(tmp_path_factory.mktemp("definitions"))
    yield process
    process.stop()


@pytest.fixture
def run(own_server, monkeypatch, capsys):
    """Commands against it, with no queues there."""
    found = CommandLine(monkeypatch, capsys, own_server.address)
    for queue in found("queue", "list", "--json").objects:
        found("queue", "delete", queue["path_name"])
    return found


def define(run):
    run("queue", "create", ORDERS, "--transactional", "--journal", "--label", "Orders")
    run("queue", "create", BILLS, "--quota-kb", "512", "--authenticate", "--privacy", "body")
    run("queue", "acl", "revoke", ORDERS, "everyone")
    run("queue", "acl", "grant", ORDERS, "user:70001", "send", "peek")
    run("queue", "acl", "deny", ORDERS, "anonymous", "send")


def exported(run, tmp_path, *options):
    file = tmp_path / "definitions.json"
    run("definitions", "export", str(file), "--force", *options)
    return file


def listing(run):
    return [each["path_name"] for each in run("queue", "list", "--json").objects]


def test_an_export_is_imported_elsewhere_and_exported_again_as_the_same_file(run, tmp_path):
    define(run)
    before = run("definitions", "export").out
    file = exported(run, tmp_path)
    assert file.read_text() == before
    for name in (ORDERS, BILLS):
        run("queue", "delete", name)
    said = run("definitions", "import", str(file)).out
    assert said == rf"created {BILLS}" + "\n" + rf"created {ORDERS}" + "\n" + (
        "2 done; 0 queues were as the file says\n"
    )
    assert run("definitions", "export").out == before
    orders = run("queue", "show", ORDERS, "--json").object
    assert (orders["transactional"], orders["journaling"], orders["label"]) == (
        True,
        True,
        "Orders",
    )


def test_a_second_import_does_nothing(run, tmp_path):
    define(run)
    file = exported(run, tmp_path)
    modified = [each["modified_time"] for each in run("queue", "list", "--json").objects]
    for options in ([], ["--prune", "--yes"], ["--dry-run"]):
        assert run("definitions", "import", str(file), *options).out == (
            "nothing to do: 2 queues as the file says\n"
        )
    assert modified == [each["modified_time"] for each in run("queue", "list", "--json").objects]


def test_what_differs_is_shown_and_then_changed(run, tmp_path):
    define(run)
    file = exported(run, tmp_path)
    run(
        "queue", "change", BILLS, "--label", "other", "--no-authenticate", "--quota-kb", "unlimited"
    )
    run("queue", "acl", "grant", ORDERS, "everyone", "full")
    shown = run("definitions", "import", str(file), "--dry-run").out
    assert f"would change {BILLS}\n  label: 'other' -> ''\n" in shown
    assert "  quota_kb: None -> 512\n" in shown
    assert "  authenticate: False -> True\n" in shown
    assert "everyone allowed full" in shown
    assert "2 things to do, nothing was done" in shown
    assert "everyone" in run("queue", "acl", "show", ORDERS).out
    objects = run("definitions", "import", str(file), "--json").objects
    assert [each.get("queue") for each in objects] == [BILLS, ORDERS, None]
    assert objects[0]["changes"]["quota_kb"] == [None, 512]
    assert objects[2] == {"steps": 2, "done": 2, "failed": 0, "same": 0, "dry_run": False}
    assert "everyone" not in run("queue", "acl", "show", ORDERS).out
    assert run("definitions", "export").out == file.read_text()


def test_nothing_is_deleted_unless_somebody_has_asked_and_confirmed(run, tmp_path):
    define(run)
    file = exported(run, tmp_path)
    run("queue", "create", r"private$\late")
    run("send", r"private$\late", "--body", "x")
    assert "nothing to do" in run("definitions", "import", str(file)).out
    assert "nobody to ask" in run.refused("definitions", "import", str(file), "--prune", code=2)
    tried = run("definitions", "import", str(file), "--prune", "--dry-run").out
    assert "would delete private$\\late, with 1 message\n" in tried
    assert r"private$\late" in listing(run)
    run("definitions", "import", str(file), "--prune", "--yes")
    assert listing(run) == [BILLS, ORDERS]


def test_what_a_queue_cannot_become_stops_everything(run, tmp_path):
    define(run)
    file = exported(run, tmp_path)
    run("queue", "delete", ORDERS)
    run("queue", "delete", BILLS)
    run("queue", "create", ORDERS)
    result = run("definitions", "import", str(file), code=1)
    assert "is not transactional here" in result.err
    assert "nothing was done" in result.err
    assert listing(run) == [ORDERS]


def test_a_queue_that_cannot_have_its_rights_is_not_created(run, tmp_path):
    define(run)
    file = exported(run, tmp_path)
    whole = json.loads(file.read_text())
    # More than fits into an access list: each SID has 28 bytes with its entry.
    crowd = [
        {"who": f"S-1-5-21-1-2-3-4-5-6-7-8-9-10-11-12-13-{n}", "rights": ["send"]}
        for n in range(1000)
    ]
    for queue in whole["queues"]:
        if queue["path"] == ORDERS:
            queue["rights"]["entries"] = crowd
    file.write_text(json.dumps(whole))
    run("queue", "delete", ORDERS)
    result = run("definitions", "import", str(file), "--prune", "--yes", code=1)
    assert ORDERS in result.err
    assert listing(run) == [BILLS]


def test_a_file_without_rights_leaves_those_that_are_there(run, tmp_path):
    define(run)
    file = exported(run, tmp_path, "--without-rights")
    assert json.loads(file.read_text())["queues"][0]["rights"] is None
    before = run("queue", "acl", "show", ORDERS).out
    assert "nothing to do" in run("definitions", "import", str(file)).out
    assert run("queue", "acl", "show", ORDERS).out == before


def test_a_file_that_is_there_is_not_replaced_by_accident(run, tmp_path):
    file = tmp_path / "kept"
    file.write_text("mine")
    assert "exists already" in run.refused("definitions", "export", str(file), code=2)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no file of definitions"),
        (b"{}", "missing required field"),
        (b"[" * 100_000, "no file of definitions"),
        (b'{"format": "x", "queue_manager": "A", "queues": []}', "this version reads"),
    ],
)
def test_what_is_no_file_of_definitions_is_refused_with_a_sentence(run, tmp_path, content, words):
    file = tmp_path / "bad"
    file.write_bytes(content)
    assert words in run.refused("definitions", "import", str(file), code=2)


def test_a_file_can_come_by_standard_input(run):
    whole = {"queue_manager": "A", "queues": [{"path": r"private$\a"}]}
    text = json.dumps({"format": "openmsmq-definitions-1", **whole})
    run("definitions", "import", "-", stdin=text.encode())
    assert listing(run) == [r"private$\a"]
    assert "cannot be read" in run.refused("definitions", "import", "/nowhere/x", code=2)


def test_what_closes_a_queue_comes_first_and_what_opens_it_last(run, own_server, tmp_path):
    run("queue", "create", ORDERS, "--authenticate")
    run("queue", "acl", "grant", ORDERS, "everyone", "full")
    open_rights = exported(run, tmp_path).read_text()
    run("queue", "acl", "revoke", ORDERS, "everyone")
    run("queue", "change", ORDERS, "--no-authenticate")
    closed_rights = exported(run, tmp_path).read_text()
    log = own_server.data / "audit.log"

    def order(text):
        before = len(log.read_text().splitlines())
        run("definitions", "import", "-", stdin=text.encode())
        lines = map(json.loads, log.read_text().splitlines()[before:])
        return [line["action"] for line in lines]

    # Authentication is asked for before everybody may send, and given up after that has ended.
    assert order(open_rights) == ["change-queue", "set-security"]
    assert order(closed_rights) == ["set-security", "change-queue"]
