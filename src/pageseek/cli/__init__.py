"""The command `pageseek`: inspect, explain, scan, index, bench."""

from pageseek.cli.main import main

__all__ = ["main"]
