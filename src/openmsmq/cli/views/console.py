"""Printing: colours for people at a terminal, plain lines for everything else."""

from __future__ import annotations

import sys
from typing import IO, Annotated, Final, NoReturn, TypeAlias

import typer
from rich.console import Console
from rich.text import Text

EXIT_REFUSED: Final = 1
EXIT_BAD_INPUT: Final = 2

YesOption: TypeAlias = Annotated[
    bool, typer.Option("--yes", help="Do not ask; only at a terminal anybody is asked.")
]

Span: TypeAlias = tuple[str, str]
"""A piece of text and its style; the empty style is plain."""


def safe(text: str) -> str:
    """Escape what would do something to a terminal instead of being shown by it."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def say_error(sentence: str) -> None:
    """Print a sentence where errors go."""
    typer.echo(f"openmsmq: {safe(sentence)}", err=True)


def ask_before(question: str, *, yes: bool) -> None:
    """Ask a person at a terminal before something is gone; a script is never asked."""
    if not is_asked(yes=yes):
        return
    if not typer.confirm(safe(question), err=True):
        say_error("nothing was done.")
        raise typer.Exit(EXIT_REFUSED)


def is_asked(*, yes: bool) -> bool:
    """Whether somebody is asked before something is done."""
    return not yes and _is_terminal(sys.stdin) and _is_terminal(sys.stdout)


def _is_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()


def fail(sentence: str) -> NoReturn:
    """Return what is wrong with the input, and stop."""
    say_error(sentence)
    raise typer.Exit(EXIT_BAD_INPUT)


class Printer:
    """Prints lines made of spans; styles are used only where somebody sees them."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self.unicode = (self._console.encoding or "").lower().startswith("utf")

    def line(self, *spans: Span) -> None:
        """Print one line."""
        if self._console.is_terminal:
            self._console.print(Text.assemble(*spans), soft_wrap=True)
        else:
            typer.echo("".join(text for text, _ in spans))
