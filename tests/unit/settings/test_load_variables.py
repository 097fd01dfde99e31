"""Variables that other flagsvc commands read are known, although they belong to no option."""

from __future__ import annotations

import pytest

from flagsvc.cli.batch.target import FROM, ONE, TO
from flagsvc.settings.load import unread

TOKENS = [f"{side.variable}{end}" for side in (ONE, FROM, TO) for end in ("", "_FILE")]


@pytest.mark.parametrize("name", [*TOKENS, "FLAGSVC_SEED", "FLAGSVC_URL", "UNLEASH_URL"])
def test_what_another_command_reads_is_no_mistake(name: str) -> None:
    """Variables that other commands read give no warning."""
    assert list(unread({name: "x"})) == []


def test_a_mistake_in_the_name_of_a_token() -> None:
    """The warning suggests the nearest variable, also one of another command."""
    (warning,) = unread({"FLAGSVC_ADMIN_TOKN": "x"})
    assert warning.endswith("did you mean `FLAGSVC_ADMIN_TOKEN`?")
