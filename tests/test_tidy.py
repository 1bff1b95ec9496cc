"""The source stays small, explained, finished, and free of the machine it was written on."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from openmsmq.model.queue import QueueRole

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src/openmsmq"
UNIT: Final = ROOT / "tests/unit"
MODULES: Final = sorted(SOURCE.rglob("*.py"))

# Above 400 lines a module wants splitting, by idea; above this it is split.
MAXIMUM_LINES: Final = 550
# A folder is one idea, and a dozen modules or so are seen at a glance.
MAXIMUM_MODULES: Final = 14

PROMISE: Final = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATH: Final = re.compile(
    r"""(?<![\w.$/-])(/(home|root|tmp|work|mnt|opt|srv|Users)/|[A-Za-z]:\\\\?(Users|Windows)\\)"""
)

# Packages without a folder of tests, and why.
WITHOUT_TESTS: Final = {
    "cli/pipeline": "each command is tested beside its pipeline, in tests/spark",
    **dict.fromkeys(
        (
            "cli/enterprise",
            "cli/messages",
            "cli/options",
            "cli/operating",
            "cli/queues",
            "cli/service",
            "cli/tools",
            "cli/views",
        ),
        "each command has a file in tests/cli, where it is run as people run it",
    ),
    **dict.fromkeys(
        (
            "console/asking",
            "console/bodies",
            "console/pages",
            "console/pages/program",
            "console/sessions",
        ),
        "in tests/console, by a browser before a real queue manager",
    ),
    **dict.fromkeys(
        (
            "sim/applications",
            "sim/checks",
            "sim/enterprise",
            "sim/hostile",
            "sim/remote",
            "sim/replication",
            "sim/scenarios",
        ),
        "a run is tested as a whole, in tests/sim",
    ),
    "manager/incoming/multicast": "between processes, in tests/system/test_example_8_stock_ticker",
    **dict.fromkeys(
        ("runtime/directory", "manager/transfer"), "between processes, and in tests/transfer"
    ),
    **dict.fromkeys(
        ("spark/source", "spark/sink", "spark/decode"), "in tests/spark, where the one Spark is"
    ),
    **dict.fromkeys(
        (
            "spark/pipelines",
            "spark/pipelines/capture",
            "spark/pipelines/delivery",
            "spark/pipelines/ingest",
            "spark/pipelines/replay",
            "spark/pipelines/report",
            "spark/pipelines/routes",
        ),
        "each pipeline has a file in tests/spark, where the one Spark is",
    ),
}

# Tests that are about no one module, and why. All others stand where their module stands.
ABOUT_SEVERAL: Final = {
    "manager/test_express_room.py": "all ways in which a message leaves its queue",
    "manager/test_owners.py": "transactions, queries and readers, by who made them",
    "model/names/test_as_written.py": "names of programs for Windows, beside the grammar's own",
    "model/test_attributes.py": "the pages of reference, and what they name in all of the model",
    "protocol/rpc/test_verification.py": "what an association makes of the end of a call",
    "protocol/test_session_conversation.py": "two whole sessions that talk to each other",
    "protocol/test_session_slow_packets.py": "a session and its packets that come slowly",
    "runtime/active_directory/test_resolving.py": "what the manager makes of lists that were read",
    "security/authentication/test_independent_peers.py": "NTLM and SPNEGO beside other programs",
    "manager/posts/test_streams_sent.py": "streams that leave: numbers, counts, receipts",
    "manager/posts/test_streams_taken.py": "streams that come: what is taken, shown and told",
    "manager/posts/test_ends.py": "what is told of messages that came, and why",
    "storage/replication/test_shown.py": "the store: what is seen before it is on the own disk",
    "storage/test_old_stores.py": "a queue manager on whole stores of older versions",
    "storage/test_planted_defects.py": "defects anywhere in the store, and who notices them",
    "storage/test_recovery.py": "the start of a store, from its journal to its pages",
    "wire/srmp/test_examples.py": "the examples of the specification, written again",
    "wire/srmp/test_messages.py": "messages on their way: what departs is what arrives",
    "wire/test_golden_frames.py": "a conversation of the specification, with all its headers",
}

each_module = pytest.mark.parametrize(
    "module", [pytest.param(path, id=str(path.relative_to(SOURCE))) for path in MODULES]
)


def lines_that_match(pattern: re.Pattern[str], text: str) -> list[str]:
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


@each_module
def test_a_module_fits_into_a_head(module: Path) -> None:
    lines = module.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MAXIMUM_LINES


def test_no_folder_is_a_hall() -> None:
    folders = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert [str(folder) for folder, count in folders.items() if count > MAXIMUM_MODULES] == []


@each_module
def test_a_module_says_what_it_owns(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))


def gifts(text: str) -> list[str]:
    """Return the functions with a value whose docstring says that they give something."""
    return [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not (isinstance(node.returns, ast.Constant) and node.returns.value is None)
        and re.match(r"Gives?\b", ast.get_docstring(node) or "")
    ]


@each_module
def test_a_function_says_what_it_returns(module: Path) -> None:
    assert gifts(module.read_text(encoding="utf-8")) == []


def test_a_function_that_gives_something_is_recognised() -> None:
    text = 'def {}() -> {}:\n    """Give the queue."""\n'
    assert gifts(text.format("one", "int") + text.format("other", "None")) == ["one"]


@each_module
def test_a_module_leaves_no_promises(module: Path) -> None:
    assert lines_that_match(PROMISE, module.read_text(encoding="utf-8")) == []


@each_module
def test_a_module_names_no_path_of_a_machine(module: Path) -> None:
    assert lines_that_match(MACHINE_PATH, module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    ['open("/home/ann/x")', "see /srv/x", r'"C:\\Users\\ann"', r"C:\Windows\x", "'/mnt/.cache/'"],
)
def test_a_path_of_a_machine_is_recognised(line: str) -> None:
    assert lines_that_match(MACHINE_PATH, line)


@pytest.mark.parametrize("line", [r"ALPHA\private$\orders", "http://host/opt/q", "a/opt/b"])
def test_a_queue_name_is_no_path_of_a_machine(line: str) -> None:
    assert not lines_that_match(MACHINE_PATH, line)


# Packets are cut in `wire` alone. Spark decodes a column of packets at once, with arrays.
MAY_CUT_PACKETS: Final = ("wire/", "spark/decode/")
HEADER_PLACES: Final = frozenset(
    {"properties_offset", "security_offset", "body_start", "body_end", "FIXED_SIZE"}
)


def last_name(node: ast.AST) -> str:
    """Return `c` of `a.b.c`; nothing for what has no name."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def is_packet(node: ast.AST) -> bool:
    """Whether an expression is the bytes of a packet, by its name: `heard.packet`, `packets[0]`."""
    if isinstance(node, ast.Subscript):
        return last_name(node.value) == "packets" and not isinstance(node.slice, ast.Slice)
    return re.fullmatch(r"(\w+_)?packet", last_name(node)) is not None


def cuts(source: str) -> list[str]:
    """Find where a module knows places in packets: it cuts one, or reckons with its headers."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=cut) if is_packet(cut):
                found.append(node)
            case ast.Call(func=ast.Attribute(attr="unpack_from" | "pack_into"), args=[cut, *_]) if (
                is_packet(cut)
            ):
                found.append(node)
            case ast.Attribute(value=ast.Attribute(attr="LAYOUT"), attr=use) if use != "pack":
                found.append(node)
            case ast.Attribute(attr=place) if place in HEADER_PLACES:
                found.append(node)
            case ast.BinOp(left, ast.Add(), right) if {last_name(left), last_name(right)} & {
                "SIZE",
                "FACTS_BYTES",
            }:
                found.append(node)
    return [f"{node.lineno}: {ast.unparse(node)}" for node in found]


@each_module
def test_only_wire_knows_what_stands_where_in_a_packet(module: Path) -> None:
    if not module.relative_to(SOURCE).as_posix().startswith(MAY_CUT_PACKETS):
        assert cuts(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "source = packet[16:32]",
        "express = not packets[0][_FLAGS] & user.RECOVERABLE",
        "message_id = entry.packet[16:32] + entry.packet[56:60]",
        "if packet[_SOURCE] != here.identifier: pass",
        "_SOURCE: Final = FACTS_BYTES + 16",
        "owner = first[1][FACTS_BYTES + 32 : FACTS_BYTES + 48]",
        "within_s, sent_s = _STAMP.unpack_from(packet, 48)",
        "_, ordinal, *_ = transaction.LAYOUT.unpack_from(data, offset)",
        "asks = data[found.properties_offset]",
        "USER_FLAGS_OFFSET: Final = base.SIZE + 44",
        "tail_end = start + message_properties.FIXED_SIZE",
        "packet[2] = 0",
    ],
)
def test_a_place_in_a_packet_is_recognised(line: str) -> None:
    assert cuts(line)


@pytest.mark.parametrize(
    "line",
    [
        "first = packets[0]",
        "rest = packets[position:]",
        "packet = value[FACTS_BYTES:]",
        "size = len(value) - FACTS_BYTES",
        "header = session.LAYOUT.pack(1, 2)",
        "source = message_bytes.source(value, FACTS_BYTES)",
    ],
)
def test_what_is_no_place_in_a_packet_is_none(line: str) -> None:
    assert not cuts(line)


def role_words(source: str) -> list[str]:
    """Find where a module goes by the word for a queue's role, and not by what the queue can."""
    words = {role.value for role in QueueRole} | {"list", "foreign"}
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare | ast.keyword | ast.Match)
        and any("role" in (getattr(part, "arg", "") or last_name(part)) for part in ast.walk(node))
        and any(isinstance(part, ast.Constant) and part.value in words for part in ast.walk(node))
    ]


@each_module
def test_nobody_asks_for_the_role_of_a_queue_by_a_word(module: Path) -> None:
    assert role_words(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        'if queue.role == "outgoing": pass',
        'told = queue.role not in ("queue", "subqueue")',
        'if "journal" == record.role: pass',
        'queue = LocalQueue(number, name, role="system")',
        'match queue.role:\n    case "list": pass',
    ],
)
def test_a_word_for_a_role_is_recognised(line: str) -> None:
    assert role_words(line)


def has_tests(package: str) -> bool:
    folders = (UNIT / package, ROOT / "tests" / package)
    whole = (UNIT / package).parent / f"test_{(UNIT / package).name}.py"
    return whole.exists() or any(True for folder in folders for _ in folder.glob("test_*.py"))


def test_every_package_has_tests_or_a_reason() -> None:
    packages = {path.parent for path in SOURCE.rglob("__init__.py")} - {SOURCE}
    names = {package.relative_to(SOURCE).as_posix() for package in packages}
    assert {name for name in names if not has_tests(name)} == WITHOUT_TESTS.keys()


def module_of(test: Path) -> Path:
    """Return the module that a test is about by its name and place, without its ending."""
    return SOURCE / test.relative_to(UNIT).parent / test.stem.removeprefix("test_")


def test_a_unit_test_stands_where_its_module_stands() -> None:
    strays = {
        test.relative_to(UNIT).as_posix()
        for test in UNIT.rglob("test_*.py")
        if not module_of(test).with_suffix(".py").is_file()
        and not (module_of(test) / "__init__.py").is_file()
    }
    assert strays == ABOUT_SEVERAL.keys()


# Attributes of another module's objects that are assigned in the manager all the same, by file.
STATE_OF_OTHERS: Final = {
    # Counted where entries change hands: four numbers, in the way of every message.
    "queues/entries.py": {"arrived", "gone", "placed", "removed"},
}


each_module_of_the_manager = pytest.mark.parametrize(
    "module",
    [
        pytest.param(path, id=str(path.relative_to(SOURCE)))
        for path in sorted((SOURCE / "manager").rglob("*.py"))
    ],
)


def assigned_attributes(tree: ast.AST) -> tuple[set[str], list[str]]:
    """Return the attributes that are assigned to `self`, and those assigned to other objects."""
    own: set[str] = set()
    others: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=found):
                targets = found
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                targets = [target]
            case ast.For(target=target):
                targets = [target]
            case _:
                continue
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                    if isinstance(part.value, ast.Name) and part.value.id == "self":
                        own.add(part.attr)
                    else:
                        others.append(part.attr)
    return own, others


def assigned_to_others(source: str) -> set[str]:
    """Return the attributes assigned to objects whose class does not stand in the same module."""
    own, others = assigned_attributes(ast.parse(source))
    return set(others) - own


@each_module_of_the_manager
def test_nothing_is_assigned_to_another_object_in_the_manager(module: Path) -> None:
    known = STATE_OF_OTHERS.get(str(module.relative_to(SOURCE / "manager")), set())
    assert assigned_to_others(module.read_text(encoding="utf-8")) == known


@each_module_of_the_manager
def test_no_attribute_of_the_manager_is_a_function_without_a_name(module: Path) -> None:
    """Whoever asks for the definition of what is called finds a method."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Lambda):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assert not any(isinstance(target, ast.Attribute) for target in targets)


@pytest.mark.parametrize(
    "line",
    ["delivery.number = self._number", "a.b.c += 1", "x.y, z = 1, 2", "self.a.b: int = 3"],
)
def test_an_assignment_to_another_object_is_recognised(line: str) -> None:
    assert assigned_to_others(line)


MAXIMUM_PARAMETERS: Final = 7
MAXIMUM_METHODS: Final = 30
# What has more, and why.
LARGER: Final = {
    "client/verbs/queue.py: change": "public: a keyword for each property of a queue",
    "client/verbs/queue.py: reserve_batch": "public: a keyword for each limit of a batch",
    "client/verbs/watching.py: queue_page": "public: a keyword for each way to choose queues",
    "manager/manager.py: QueueManager": "a method for each input of a driver",
    "manager/requests/sends.py: __init__": "each is a room that what is sent goes through",
    "remote/elsewhere.py: QueueElsewhere": "a method for each step of each call about one queue",
    "runtime/service.py: start": "public: a keyword for each thing that a start may be given",
    "spark/pipelines/ingest/__init__.py: ingest": "public: a keyword for each option of a pipeline",
    "storage/base.py: Base": "a method for each question, what the journal has left included",
    "storage/engine.py: JournaledStore": "a commit in two steps, for a log that comes between",
    "wire/headers/message_properties.py: of": "a keyword for each field that may be given",
}


def too_large(module: Path) -> set[str]:
    """Return the functions with too many parameters, and the classes with too many methods."""
    name = module.relative_to(SOURCE)
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            kinds = ast.FunctionDef | ast.AsyncFunctionDef
            if sum(isinstance(part, kinds) for part in node.body) > MAXIMUM_METHODS:
                found.add(f"{name}: {node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            extra = (given.vararg is not None) + (given.kwarg is not None)
            count = len(names) + extra - (names[:1] in (["self"], ["cls"]))
            if count > MAXIMUM_PARAMETERS:
                found.add(f"{name}: {node.name}")
    return found


def test_no_class_and_no_list_of_parameters_is_too_long() -> None:
    modules = [module for module in MODULES if "cli" not in module.relative_to(SOURCE).parts]
    assert set().union(*map(too_large, modules)) == set(LARGER)
