"""The command line: one file per group of commands, and the only home of typer and rich."""
