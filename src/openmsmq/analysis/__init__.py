"""The one reader of traffic: who said what to whom, in which session, and what is wrong with it.

Packets with their time, direction and connection go in; events come out: packets, anomalies, what
became of messages, and how sessions went. `openmsmq packet decode`, Spark's pipeline of captures
and the simulator's watch adapt what they have to it, and show what it says in their own way. It
knows packets and nothing of the machines that made them, so it can judge those.
"""
