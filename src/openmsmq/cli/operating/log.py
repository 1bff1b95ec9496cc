"""`openmsmq log`: what a running queue manager logs."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final

import typer

from openmsmq.api.program import LOG_LEVEL_MAX_S, LOG_LEVELS
from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.views.output import print_result, time_text

app: Final = typer.Typer(
    help="What a running queue manager logs; for administrators.", no_args_is_help=True
)

LevelName = Enum("LevelName", {level.upper(): level for level in LOG_LEVELS}, type=str)  # type: ignore[misc]


@app.command()
def level(
    context: typer.Context,
    name: Annotated[LevelName, typer.Argument(metavar="LEVEL", help=f"{', '.join(LOG_LEVELS)}.")],
    seconds: Annotated[
        int,
        typer.Option(
            "--for",
            metavar="SECONDS",
            min=0,
            max=LOG_LEVEL_MAX_S,
            help="Go back to the configured level after so many seconds; 0 for never.",
        ),
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Log another level from now on, without a restart; the audit log tells who wanted that.

    A restart brings the configured level back.
    """
    with connected(context) as manager:
        now = manager.set_log_level(name.value, for_s=seconds)
    until = time_text(now.until_s) if now.until_s else None
    after = f" until {until}, then {now.configured}" if until else ""
    print_result(
        {"level": now.level, "until": until, "configured": now.configured},
        f"logs {now.level}{after}",
        json=json,
    )
