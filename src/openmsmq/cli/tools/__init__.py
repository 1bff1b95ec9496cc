"""Commands that need no queue manager: packets made readable, the simulator, reports."""
