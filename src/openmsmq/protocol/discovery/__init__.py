"""Finding a directory server by broadcast, and answering those who do. [MQSD]"""
