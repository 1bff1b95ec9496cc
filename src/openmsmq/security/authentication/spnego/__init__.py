"""SPNEGO: two sides agree on how one of them proves who it is. [RFC 4178, MS-SPNG]"""
