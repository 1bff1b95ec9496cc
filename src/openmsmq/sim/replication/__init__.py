"""A queue manager on several computers, in virtual time: the machines of the product, a log, faults."""
