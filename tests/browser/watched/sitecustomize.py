"""Notes, in every Python program that starts with it, which other machines it reaches for or looks up."""

import os
import sys

HERE = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::", "", None}
LOOKS_UP = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
REACHES = {"socket.connect", "socket.sendto", "socket.sendmsg"}


def _watch(event, arguments):
    if event in LOOKS_UP:
        host = arguments[0]
    elif event in REACHES and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host not in HERE:
        with open(os.environ["OUTSIDE_LOG"], "a") as log:
            log.write(f"{event} {host}\n")


sys.addaudithook(_watch)
