"""Routing between sites at least cost: pure functions of what the directory says. [MQBR]"""
