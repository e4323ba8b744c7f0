"""The command `pageseek`: inspect, explain, scan, bench."""

from pageseek.cli.main import main

__all__ = ["main"]
