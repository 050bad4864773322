"""The link of a server for a class, and its QR code for a projector: what `make class` prints first."""

import argparse
import re
from typing import Final

import segno

from attention_sieve.core.errors import AnalysisError

HOST: Final = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")
"""A name, an IPv4 address, or an IPv6 address in brackets."""


def class_link(host: str, port: int) -> str:
    """Link to the lessons of a server.

    Raises: AnalysisError for an invalid host or port.
    """
    if not HOST.fullmatch(host) or not 1 <= port <= 65535:
        raise AnalysisError(f"{host[:60]!r} and port {port} are not the name and port of a server. Set HOST and PORT.")
    return f"http://{host}:{port}/lessons"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    arguments = parser.parse_args()
    try:
        url = class_link(arguments.host, arguments.port)
    except AnalysisError as error:
        raise SystemExit(str(error)) from None
    print(f"For your class: {url}\n", flush=True)
    segno.make(url, micro=False).terminal(compact=True)


if __name__ == "__main__":
    main()
