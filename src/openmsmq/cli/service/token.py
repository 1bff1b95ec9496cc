"""`openmsmq token`: make, list and revoke what applications on other computers show.

The file of the tokens is changed directly, on the computer of the queue manager, so that whoever
may write there, and nobody else, can let others in. A running server looks at it by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from openmsmq.cli.options.accounts import ACCOUNT_HELP, read_account
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.output import JsonObject, print_json, print_result, print_table, time_text
from openmsmq.client.accounts import account_text
from openmsmq.runtime.api.tokens import Token, create_token, read_tokens, revoke_token
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import TOKENS_FILE, VARIABLE_PREFIX
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import ADMINISTRATORS, Sid

TOKEN_DAYS_MAX_COUNT: Final = 36_500
"""How long a token can be good at most, if not for ever."""

app: Final = typer.Typer(
    help="Tokens for applications on other computers: make, list, revoke.", no_args_is_help=True
)

DataOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--data",
        metavar="DIRECTORY",
        envvar=f"{VARIABLE_PREFIX}DATA",
        help="Data directory of the queue manager.",
    ),
]
FileOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--file",
        metavar="FILE",
        envvar=f"{VARIABLE_PREFIX}TOKENS_FILE",
        help="File of the tokens, relative to the data directory; as the option tokens_file.",
    ),
]


def _path(data: str, file: str) -> Path:
    if not data and not Path(file).is_absolute():
        fail("where are the tokens? Give --data DIRECTORY, as to `openmsmq serve`.")
    return Path(data) / file


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the token is for.")],
    scope: Annotated[
        list[Scope],
        typer.Option(
            help="What it is good for: send, receive (and peek), or admin (everything). May be "
            "repeated."
        ),
    ],
    queue: Annotated[
        list[str],
        typer.Option(
            metavar="PATTERN",
            help=r"Only for queues of this name; * and ? stand for anything, as in 'private$\a*'. "
            "May be repeated.",
        ),
    ] = [],  # noqa: B006 -- typer copies it
    user: Annotated[
        Sid | None,
        typer.Option(
            metavar="WHO",
            parser=read_account,
            help=f"Whose rights it has, within its scope: {ACCOUNT_HELP} Without: administrators.",
        ),
    ] = None,
    expires: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS",
            min=1,
            max=TOKEN_DAYS_MAX_COUNT,
            help="How many days it is good; without, until it is revoked.",
        ),
    ] = None,
    data: DataOption = "",
    file: FileOption = TOKENS_FILE,
    json: JsonOption = False,
) -> None:
    """Make a token and print it. It is shown only now: the file has nothing but its hash."""
    path = _path(data, file)
    try:
        text, token = create_token(
            path,
            name,
            tuple(scope),
            now_s=read_clocks().unix_s,
            queues=tuple(queue),
            user=user or ADMINISTRATORS,
            expires_days=expires,
        )
    except ConfigError as error:
        fail(f"{error}.")
    print_result({"token": text, **_object(token)}, text, json=json)


@app.command("list")
def list_(data: DataOption = "", file: FileOption = TOKENS_FILE, json: JsonOption = False) -> None:
    """List the tokens; the texts to show are kept nowhere."""
    try:
        tokens = read_tokens(_path(data, file))
    except ConfigError as error:
        fail(f"{error}.")
    if json:
        for token in tokens:
            print_json(_object(token))
        return
    now_s = read_clocks().unix_s
    rows = [
        [
            token.name,
            ", ".join(each.value for each in token.scopes),
            ", ".join(token.queues) or "all",
            account_text(Sid.parse(token.user)),
            time_text(token.created_time_s),
            _until(token, now_s),
        ]
        for token in tokens
    ]
    if not print_table(("Name", "Scope", "Queues", "User", "Created", "Good"), rows):
        typer.echo("there are no tokens: openmsmq token create NAME --scope send")


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token.")],
    data: DataOption = "",
    file: FileOption = TOKENS_FILE,
    json: JsonOption = False,
) -> None:
    """Revoke a token: nobody comes in by it, and who has is cut off within seconds."""
    try:
        token = revoke_token(_path(data, file), name)
    except ConfigError as error:
        fail(f"{error}.")
    print_result(_object(token), f"revoked {name}", json=json)


def _until(token: Token, now_s: int) -> str:
    if token.expires_time_s is None:
        return "until it is revoked"
    time = time_text(token.expires_time_s)
    return f"until {time}" if token.is_good(now_s) else f"no longer, since {time}"


def _object(token: Token) -> JsonObject:
    expires = token.expires_time_s
    return {
        "name": token.name,
        "scopes": [each.value for each in token.scopes],
        "queues": list(token.queues),
        "user": token.user,
        "created_time": time_text(token.created_time_s),
        "expires_time": None if expires is None else time_text(expires),
    }
