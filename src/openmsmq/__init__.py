"""OpenMSMQ: Microsoft Message Queuing on Linux and anywhere Python runs."""

__version__ = "0.1.0"
