"""The group `openmsmq pipeline` and its commands."""

from __future__ import annotations

from typing import Final

import typer

from openmsmq.cli.pipeline import capture, delivery, ingest, init, replay, report, routes

app: Final = typer.Typer(
    help="Turn messages into tables, reports and replays with Spark (needs the extra `spark`).",
    no_args_is_help=True,
)
app.command("ingest")(ingest.ingest)
app.command("delivery")(delivery.delivery)
app.command("report")(report.report)
app.command("replay")(replay.replay)
app.command("capture")(capture.capture)
app.command("routes")(routes.routes)
app.command("init")(init.init)
