"""The reference of the command line, written from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, Final

import typer.main

from openmsmq.cli.app import PROGRAM, app
from openmsmq.cli.enterprise.discover import DISCOVER_KEYS
from openmsmq.cli.options.connecting import EXIT_CODES
from openmsmq.cli.queues.outgoing import OUTGOING_KEYS
from openmsmq.cli.views.message import MESSAGE_KEYS

# These come with the library and say nothing about OpenMSMQ.
_COMPLETION: Final = ("install_completion", "show_completion")


def cli_reference() -> str:
    """Write all commands as Markdown, for `docs/reference/cli.md`."""
    root: Any = typer.main.get_command(app)
    lines = [
        "Results go to the standard output: tables for people, and with `--json` one JSON object a",
        "line for programs. Errors go to the standard error: one sentence with the MQ_ERROR name",
        "([all of them](errors.md)). Texts that contain `$`, `;` or a backslash need quotes in a",
        "shell: `'private$\\orders'`. `openmsmq --install-completion` teaches your shell to",
        "complete commands and options.",
        "",
        "| Exit code | Meaning |",
        "|---|---|",
        *(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()),
        "",
        "## Options before the command",
        "",
        *_options(root),
        *_commands(root, PROGRAM),
        "## The object of a message",
        "",
        "What `receive`, `peek`, `outgoing peek`, `journal` and `deadletter` print with `--json`.",
        "Times are ISO 8601 in UTC, bytes are base64, messages and transactions are named",
        "`{guid}\\number`; null stands for what a message does not have.",
        "",
        "| Key | Meaning |",
        "|---|---|",
        *(f"| `{key}` | {meaning} |" for key, meaning in MESSAGE_KEYS.items()),
        "",
        "## The object of an outgoing queue",
        "",
        "What `outgoing list` and `outgoing show` print with `--json`.",
        "",
        "| Key | Meaning |",
        "|---|---|",
        *(f"| `{key}` | {meaning} |" for key, meaning in OUTGOING_KEYS.items()),
        "",
        "## The object of a directory server",
        "",
        "What `directory discover` prints with `--json`.",
        "",
        "| Key | Meaning |",
        "|---|---|",
        *(f"| `{key}` | {meaning} |" for key, meaning in DISCOVER_KEYS.items()),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        here = f"{path} {name}"
        if hasattr(command, "commands"):
            yield from _commands(command, here)
            continue
        arguments = [_argument(each) for each in command.params if _is_argument(each)]
        if len(command.params) > len(arguments):
            arguments.append("[OPTIONS]")
        usage = " ".join([here, *arguments])
        yield f"## {here.removeprefix(PROGRAM).strip()}"
        yield ""
        yield f"`{usage}`"
        yield ""
        yield cleandoc(command.help or "")
        yield ""
        yield from _options(command)


def _options(command: Any) -> Iterator[str]:
    shown = [
        each for each in command.params if each.name not in (*_COMPLETION, "help") and each.help
    ]
    if not shown:
        return
    yield "| Option | Meaning |"
    yield "|---|---|"
    for each in shown:
        yield f"| {_cell(_names(each))} | {_cell(_meaning(each))} |"
    yield ""


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _names(parameter: Any) -> str:
    if _is_argument(parameter):
        return f"`{_argument(parameter)}`"
    names = [*parameter.opts, *parameter.secondary_opts]
    if parameter.metavar and not parameter.is_flag:
        names[0] += f" {parameter.metavar}"
    return ", ".join(f"`{name}`" for name in names)


def _meaning(parameter: Any) -> str:
    text = str(parameter.help)
    variable = getattr(parameter, "envvar", None)
    if variable:
        text += f" Variable: `{variable}`."
    default = parameter.default
    # `False`, an empty text and zero are what everybody expects.
    if not callable(default) and default not in (None, False, "", 0, ()):
        text += f" Default: `{getattr(default, 'value', default)}`."
    return text


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
