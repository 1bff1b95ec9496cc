"""The system as a whole, as its overview tells it: its nine examples, and what it promises.

One file for each example of MS-MQOD section 3, named and told as it is there, with queue managers
that are processes of their own; and one for each chapter of section 2 that promises something.
"""
