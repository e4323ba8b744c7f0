"""`python -m pageseek` is the command `pageseek`."""

import sys

from pageseek.cli import main

if __name__ == "__main__":
    sys.exit(main())
