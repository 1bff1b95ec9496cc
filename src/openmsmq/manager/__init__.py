"""The queue manager itself: a value machine that two drivers run, production and simulator."""
