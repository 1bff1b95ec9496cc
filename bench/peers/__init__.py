"""What the bench of queues compares: OpenMSMQ, its peers, and the same loop without a product.

A peer is a module with `start`, which runs its server, and two functions for two processes,
`produce` and `consume`. They do the same work for each peer, each in the best way of its client.
"""
