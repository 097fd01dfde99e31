"""Enrichers run one after the other, plain and async alike."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flagsvc.core.errors import ExtensionError
from flagsvc.engine.context import Context
from flagsvc.proxy.extensions import enrich


def add(context: Context) -> Context:
    return context.replace(properties={**context.properties, "seen": "1"})


async def add_later(context: Context) -> Context:
    """Add to it after a turn of the loop."""
    await asyncio.sleep(0)
    return context.replace(properties={**context.properties, "seen": context.properties["seen"] + "2"})


def test_each_sees_what_the_one_before_returned() -> None:
    """Plain and async enrichers run in their order, and the context that came in is not changed."""
    given = Context(user_id="7", now=5.0, entropy=6)
    result = asyncio.run(enrich(given, [add, add_later]))
    assert result.properties == {"seen": "12"}
    assert (result.user_id, result.now, result.entropy) == ("7", 5.0, 6)
    assert given.properties == {}


def test_no_enrichers() -> None:
    """Without enrichers the context stays the very same object."""
    given = Context()
    assert asyncio.run(enrich(given, [])) is given


async def later_none(context: Context) -> None:
    """Forget to return."""


@pytest.mark.parametrize("wrong", [lambda context: None, later_none, lambda context: context.as_dict()])
def test_anything_but_a_context(wrong: object) -> None:
    """An enricher that returns anything else raises, and the message names it and the type, never the value."""
    with pytest.raises(ExtensionError, match=r"enricher `.*` returned a (NoneType|dict), not a Context"):
        asyncio.run(enrich(Context(user_id="secret-person"), [wrong]))  # type: ignore[list-item]


def test_properties_become_texts() -> None:
    """As they do in a body: numbers and booleans as JavaScript writes them, None as the empty text."""

    def mixed(context: Context) -> Context:
        properties: dict[str, Any] = {"tier": 7, "share": 1.0, "on": True, "none": None, "region": "eu"}
        return context.replace(properties=properties)

    given = asyncio.run(enrich(Context(user_id="7", now=5.0), [mixed]))
    assert given.properties == {"tier": "7", "share": "1", "on": "true", "none": "", "region": "eu"}
    assert (given.user_id, given.now) == ("7", 5.0)


@pytest.mark.parametrize("wrong", [{"a": "secret-person"}, ["secret-person"]])
def test_a_property_that_can_be_no_text(wrong: object) -> None:
    """An enricher that returns one raises, and the message names the property and the type, never the value."""

    def put(context: Context) -> Context:
        return context.replace(properties={"region": "eu", "plan": wrong})

    with pytest.raises(ExtensionError, match=r"enricher `put` .* property `plan` is a (dict|list), not a text"):
        asyncio.run(enrich(Context(), [put]))
