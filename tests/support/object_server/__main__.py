"""`python -m support.object_server [FOLDER]`: prints its port, and serves until its input ends."""

from __future__ import annotations

import argparse
import sys

from support.object_server.server import ObjectServer


def main() -> None:
    """Serve a folder, or memory, until standard input is closed."""
    parser = argparse.ArgumentParser(prog="object_server", description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--bandwidth", type=float)
    parser.add_argument("--jitter", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    said = vars(parser.parse_args())
    with ObjectServer(said.pop("folder"), **said) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
