"""Every test of the wire runs over each transport."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.wirekit import Opener


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that opens a proxy over every transport. The package can only be imported from here on."""
    from support.wirekit import TRANSPORTS

    if "opened" in metafunc.fixturenames:
        metafunc.parametrize("opened", list(TRANSPORTS), indirect=True)


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Opener:
    """Return what opens a proxy over a transport."""
    from support.wirekit import TRANSPORTS, open_wire

    return partial(open_wire, TRANSPORTS[request.param])


@pytest.fixture
def over_asgi() -> Opener:
    """Return what opens a proxy over ASGI alone: for what no parser of HTTP lets through, and for mounts."""
    from support.wirekit import TRANSPORTS, open_wire

    return partial(open_wire, TRANSPORTS["asgi"])
