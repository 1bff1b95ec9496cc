"""SOAP messages over HTTP: envelopes, what is attached to them, and ordinary messages. [MQSRM 2]"""
