"""Benchmarks, run by `make bench`: figures as ratios within one run, and the bars they must meet.

A bench is a function that takes an `Effort` and gives `Figure`s. To add one, write a module with
such a function and name it in `bench.registry`.
"""
