"""Spans of OpenTelemetry about messages that come and go, made beside the queue manager."""
