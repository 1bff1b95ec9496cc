"""Commands about queues: the queues, journals, rights, outgoing queues, transactions, queries."""
