"""`python -m flagsvc`: the same as the command `flagsvc`."""

from __future__ import annotations

import sys

from flagsvc.cli import main

if __name__ == "__main__":
    sys.exit(main())
