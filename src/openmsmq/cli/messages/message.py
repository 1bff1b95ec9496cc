"""`openmsmq message`: one message copied, changed, sent again, and found."""

from __future__ import annotations

from typing import Final

import typer

from openmsmq.cli.messages import again, editing, tracing

app: Final = typer.Typer(
    help="Messages one by one: copy, change, send again, find.", no_args_is_help=True
)
app.command("copy")(again.copy)
app.command("edit")(editing.edit)
app.command("resend")(again.resend)
app.command("trace")(tracing.trace)
