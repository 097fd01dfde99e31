"""JSON Patch (RFC 6902)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.patch import apply_patch

DOCUMENT = {"a": 1, "list": [1, 2, 3], "deep": {"x": {"y": "z"}}, "a/b": 1, "m~n": 2}


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        ({"op": "replace", "path": "/a", "value": 5}, {"a": 5}),
        ({"op": "add", "path": "/new", "value": None}, {"new": None}),
        ({"op": "replace", "path": "/new", "value": 5}, {"new": 5}),
        ({"op": "add", "path": "/list/1", "value": 9}, {"list": [1, 9, 2, 3]}),
        ({"op": "add", "path": "/list/-", "value": 9}, {"list": [1, 2, 3, 9]}),
        ({"op": "add", "path": "/list/99", "value": 9}, {"list": [1, 2, 3, 9]}),
        ({"op": "replace", "path": "/list/1", "value": 9}, {"list": [1, 9, 3]}),
        ({"op": "remove", "path": "/list/0"}, {"list": [2, 3]}),
        ({"op": "remove", "path": "/list/9"}, {}),
        ({"op": "remove", "path": "/nosuch"}, {}),
        ({"op": "copy", "from": "/deep", "path": "/list/0"}, {"list": [{"x": {"y": "z"}}, 1, 2, 3]}),
        ({"op": "replace", "path": "/deep/x/y", "value": 5}, {"deep": {"x": {"y": 5}}}),
        ({"op": "replace", "path": "/a~1b", "value": 5}, {"a/b": 5}),
        ({"op": "replace", "path": "/m~0n", "value": 5}, {"m~n": 5}),
        ({"op": "test", "path": "/deep/x", "value": {"y": "z"}}, {}),
        ({"op": "test", "path": "/a", "value": 1.0}, {}),
        ({"op": "test", "path": "/list", "value": [1, 2, 3.0]}, {}),
    ],
)
def test_operations(operation: dict[str, Any], changed: dict[str, Any]) -> None:
    """Each operation returns the changed document. The given document does not change."""
    before = deepcopy(DOCUMENT)
    assert apply_patch(DOCUMENT, [operation]) == DOCUMENT | changed
    assert before == DOCUMENT


def test_moving() -> None:
    """A moved value is no longer at its old place. Any number of moves is allowed: they copy nothing."""
    assert apply_patch({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}]) == {"b": 1}
    assert apply_patch([1, 2], [{"op": "move", "from": "/0", "path": "/1"}]) == [2, 1]
    there, back = ({"op": "move", "from": f"/{one}", "path": f"/{other}"} for one, other in (("a", "b"), ("b", "a")))
    document = {"a": ["x" * 100_000]}
    assert apply_patch(document, [there, back] * 1000) == document


def test_the_whole() -> None:
    """An empty pointer means the whole document. An empty patch changes nothing."""
    assert apply_patch({"a": 1}, [{"op": "replace", "path": "", "value": []}]) == []
    assert apply_patch({"a": 1}, [{"op": "add", "path": "", "value": 5}]) == 5
    assert apply_patch({"a": 1}, []) == {"a": 1}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/nosuch/x", "value": 1},
        {"op": "replace", "path": "/a/x", "value": 1},
        {"op": "replace", "path": "/list/3", "value": 1},
        {"op": "replace", "path": "/list/x", "value": 1},
        {"op": "replace", "path": "/list/9/x", "value": 1},
        {"op": "replace", "path": "a", "value": 1},
        {"op": "replace", "path": "/a"},
        {"op": "remove", "path": ""},
        {"op": "copy", "path": "/b", "from": "/nosuch"},
        {"op": "move", "path": "/b"},
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/a", "value": True},
        {"op": "test", "path": "/list", "value": [True, 2, 3]},
        {"op": "test", "path": "/list", "value": [1, 2]},
        {"op": "test", "path": "/deep", "value": {"x": {}}},
        {"op": "test", "path": "/nosuch", "value": 2},
    ],
)
def test_what_does_not_fit(operation: dict[str, Any]) -> None:
    """An operation that cannot be applied is a 400. The message has the operation's index."""
    with pytest.raises(CallerError, match="Could not apply provided patch: operation 1: ") as caught:
        apply_patch(DOCUMENT, [{"op": "replace", "path": "/a", "value": 1}, operation])
    assert caught.value.status == 400


def test_copies_are_bounded() -> None:
    """Each copy of the whole doubles a document. The bound stops the operation that copies too much, of any kind of value."""
    whole = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(40)]
    text = [{"op": "copy", "from": "/text", "path": f"/{number}"} for number in range(40)]
    digits = [{"op": "copy", "from": "/digits", "path": f"/{number}"} for number in range(400)]
    document = {"text": "x" * 100_000, "digits": 10**4000}
    for operations in (whole, text, digits):
        with pytest.raises(CallerError, match=r"operation \d+: the patch copies more than 1,000,000 characters"):
            apply_patch(document, operations)
