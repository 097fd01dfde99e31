"""Compile the hot route with mypyc where a C compiler exists; install the same source interpreted where none does."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from setuptools import setup

COMPILED = Path("src/flagsvc/compiled.txt")


def compiler() -> str | None:
    """Return the C compiler that the extension build will call, or None."""
    names = (os.environ.get("CC", "").split(" ")[0], "cc", "gcc", "clang")
    return next((name for name in names if name and shutil.which(name)), None)


def modules() -> list[str]:
    """Return the source paths that are compiled: one a line in compiled.txt, `#` starts a comment."""
    lines = (line.split("#")[0].strip() for line in COMPILED.read_text().splitlines())
    return [f"src/flagsvc/{line}" for line in lines if line]


def extensions() -> list[object]:
    """Return the extension modules to build; none when there is no compiler or FLAGSVC_PURE=1 asks for none."""
    if os.environ.get("FLAGSVC_PURE") == "1":
        print("flagsvc: FLAGSVC_PURE=1, the engine stays interpreted", file=sys.stderr)
        return []
    if compiler() is None:
        print("flagsvc: no C compiler found, the engine stays interpreted (about ten times slower)", file=sys.stderr)
        return []
    from mypyc.build import mypycify

    return mypycify(["--config-file=pyproject.toml", *modules()], opt_level=os.environ.get("FLAGSVC_OPT", "3"))


setup(ext_modules=extensions())
