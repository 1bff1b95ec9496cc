"""Network captures: files of frames become MSMQ packets again, and packets become such files.

Nothing here opens a file or a socket. Readers take a `read(size)` function, writers give bytes.
"""
