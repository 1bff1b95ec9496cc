"""A message system that is not MSMQ: letters of one line of JSON, to mailboxes, over TCP.

It is a program of its own, and knows nothing of queue managers. A letter to the mailbox `STATUS`
is answered, in time, by one to the mailbox that it names.
"""

from __future__ import annotations

import json
import socket
import sys


def main(address: str, port: int) -> None:
    """Answer the letters of one partner after the other."""
    with socket.create_server((address, port)) as listening:
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            with connection, connection.makefile("rw", encoding="utf-8") as letters:
                for line in letters:
                    letter = json.loads(line)
                    print(letter["to"], letter["text"], flush=True)
                    if letter["to"] != "STATUS":
                        continue
                    text = f"{letter['text']}: on the assembly line"
                    answer = {"to": letter["from"], "text": text, "about": letter["number"]}
                    letters.write(json.dumps(answer) + "\n")
                    letters.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
