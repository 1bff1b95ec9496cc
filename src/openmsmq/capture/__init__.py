"""Network captures: files of frames become streams and datagrams again, and back.

Nothing here opens a file or a socket. Readers take a `read(size)` function, writers give bytes.
"""
