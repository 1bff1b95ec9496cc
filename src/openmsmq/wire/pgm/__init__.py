"""Packets of PGM, the transport of multicast messages. [RFC 3208, MC-MQSRM 2.1.3]"""
