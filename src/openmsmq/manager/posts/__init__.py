"""Messages over HTTP: what is posted to us, what we post, and the receipts for both. [MQSRM 3.1]"""
