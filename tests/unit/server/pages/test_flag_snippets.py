"""The code of each SDK for a flag."""

from __future__ import annotations

import pytest

from flagsvc.server.pages.flag_snippets import SDKS, Sdk, list_snippets

PAIRS = ("()", "[]", "{}")


def code_of(sdk: Sdk, *, has_variants: bool) -> str:
    """Return the code of an SDK."""
    found = {each["title"]: each["code"] for each in list_snippets("https://flags.example.com", "f", has_variants=has_variants)}
    return str(found[sdk.title])


@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.title)
def test_code_of_an_sdk(sdk: Sdk) -> None:
    """It names the server and the flag once, and the flag again for its variant; each bracket is closed, and nothing stays open."""
    plain, varied = code_of(sdk, has_variants=False), code_of(sdk, has_variants=True)
    quote = '"' if '"' in sdk.ask else "'"
    for code, asks in ((plain, 1), (varied, 2)):
        assert code.count("https://flags.example.com/api") == 1 and code.count(f"{quote}f{quote}") == asks
        assert "@SERVER@" not in code and "@FLAG@" not in code
        assert all(code.count(pair[0]) == code.count(pair[1]) for pair in PAIRS)
        assert code.count("FRONTEND-TOKEN") + code.count("BACKEND-TOKEN") == 1
        assert ("/api/frontend" in code) is ("FRONTEND-TOKEN" in code)
    assert varied.startswith(plain)
    if sdk.title == "Python":
        compile(varied, "snippet", "exec")
