"""Variables of other commands of ours: known, and no option's."""

from __future__ import annotations

import pytest

from flagsvc.cli.batch.target import FROM, ONE, TO
from flagsvc.settings.load import unread

TOKENS = [f"{side.variable}{end}" for side in (ONE, FROM, TO) for end in ("", "_FILE")]


@pytest.mark.parametrize("name", [*TOKENS, "FLAGSVC_SEED", "FLAGSVC_URL", "UNLEASH_URL"])
def test_what_another_command_reads_is_no_mistake(name: str) -> None:
    """The variables that the first start of a server prints cause no warning, neither at the proxy nor at the server."""
    assert list(unread({name: "x"})) == []


def test_a_mistake_in_the_name_of_a_token() -> None:
    """The nearest variable is named, also one of another command."""
    (warning,) = unread({"FLAGSVC_ADMIN_TOKN": "x"})
    assert warning.endswith("did you mean `FLAGSVC_ADMIN_TOKEN`?")
