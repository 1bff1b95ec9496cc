"""Alarms: what an operator wants to hear of is looked at, raised, told and cleared."""
