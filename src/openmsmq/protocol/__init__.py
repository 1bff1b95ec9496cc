"""How queue managers talk to each other: sessions, links, sequences, duplicates. [MQQB 3]"""
