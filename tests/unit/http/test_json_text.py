"""The depth of JSON bodies: how many lists and objects may be within each other."""

from __future__ import annotations

import pytest

from flagsvc.http.json_text import parse
from flagsvc.http.messages import HttpError


@pytest.mark.parametrize("text", ['{"a": {"a": 1}}', "[[1]]", '[{"a": 1}]', '{"a": [1], "b": 1}'])
def test_how_deep_it_may_be(text: str) -> None:
    """A text with a list or an object within another one is read with a depth of 2, and refused with a depth of 1."""
    assert parse(text.encode(), "utf-8", 2) is not None
    with pytest.raises(HttpError) as refused:
        parse(text.encode(), "utf-8", 1)
    assert refused.value.status == 400
