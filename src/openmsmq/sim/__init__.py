"""The deterministic simulator: whole queue managers on one clock, one network and one seed.

The class that production runs is run here by another driver. Time is a number, the network is a
heap of events, a disk is a dictionary that may forget, and everything that chance decides comes
from one seeded generator: the same seed gives the same run, down to the last byte.
"""
