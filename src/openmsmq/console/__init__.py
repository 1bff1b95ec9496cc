"""The web console: pages for those who operate a queue manager.

It is a client of the queue manager like any other and has no rights of its own beside it: every
page is asked for with the identity of who has signed in, so a page shows what that caller may see.
"""
