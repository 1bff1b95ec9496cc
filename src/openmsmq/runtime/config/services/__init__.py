"""Tables about services that this queue manager uses."""
