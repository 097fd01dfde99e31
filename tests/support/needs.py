"""What a test needs beyond Python. If it is missing, the test skips with the reason, or fails with REQUIRE_ALL=1."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def everything() -> bool:
    """Return whether no test may skip: REQUIRE_ALL=1."""
    return os.environ.get("REQUIRE_ALL") == "1"


def missing(reason: str) -> NoReturn:
    """Skip the running test with `reason`; fail it when REQUIRE_ALL=1."""
    if everything():
        pytest.fail(f"REQUIRE_ALL=1 and {reason}", pytrace=False)
    pytest.skip(reason)


def program(*names: str) -> str:
    """Return the path of the first of the programs that exists."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    missing(f"none of the programs {', '.join(names)} is installed")
