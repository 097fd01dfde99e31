"""A replica's own polls of the upstream."""

from __future__ import annotations

import pytest

from flagsvc.proxy.replicas.checks import FAILURES, UpstreamChecks


def test_a_check_that_goes_well() -> None:
    """A successful poll is counted. It confirms the served configuration if it returned it."""
    checks = UpstreamChecks()
    checks.note("", known=False)
    assert (checks.number, checks.failing, checks.confirmed) == (1, "", False)
    checks.note("", known=True)
    checks.note("", known=False)
    assert (checks.number, checks.confirmed) == (3, True)


@pytest.mark.parametrize(
    ("failing", "serves", "useless"),
    [("network", True, True), ("network", False, True), ("server", False, True), ("server", True, False)],
)
def test_a_leader_of_no_use(failing: str, serves: bool, useless: bool) -> None:
    """Does not reach the upstream, or has nothing and gets nothing, three times in a row."""
    checks = UpstreamChecks()
    for _ in range(FAILURES - 1):
        checks.note(failing, known=False)
    assert not checks.useless(serves)
    checks.note(failing, known=False)
    assert checks.useless(serves) is useless
    checks.note("", known=False)
    assert not checks.useless(serves)


def test_another_role() -> None:
    """A change of the role forgets earlier polls, but not their number."""
    checks = UpstreamChecks()
    for _ in range(FAILURES):
        checks.note("network", known=True)
    checks.forget()
    assert (checks.number, checks.failing, checks.confirmed, checks.useless(False)) == (FAILURES, "", False, False)
