"""`python -m flagsvc`: the same as the command `flagsvc`."""

from __future__ import annotations

from flagsvc.cli import process

if __name__ == "__main__":
    process()
