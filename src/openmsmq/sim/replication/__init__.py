"""A queue manager on several computers, in virtual time: a log, members, and what goes wrong."""
