"""NTLM, version 2 alone: messages, keys, and both sides as machines without I/O. [MS-NLMP]"""
