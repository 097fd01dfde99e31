"""A data set in pieces: for all data sets, each piece is small enough, and together they are the data set."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.cli.batch.client import encode_json
from flagsvc.cli.batch.pieces import FLAG_FIELDS, MAX_FLAGS, TooLargeError, parents_first, split_request

TEXTS = st.text(st.characters(codec=None), max_size=40)
"""Texts of any characters, also halves of surrogate pairs."""
FLAGS = st.lists(st.tuples(TEXTS, st.lists(st.integers(0, 5), max_size=3), st.integers(-1, 30)), max_size=25)
"""Of each flag: its description, the segments of its strategies, and by its place which flag is its parent."""


def data_of(flags: list[tuple[str, list[int], int]]) -> dict[str, Any]:
    """Return a data set; a parent may stand before or after its child, and there are no circles."""
    names = [f"flag-{number}" for number in range(len(flags))]
    asked = [(names[n], parent) for n, (_, _, parent) in enumerate(flags) if n < parent < len(names)]
    return {
        "features": [{"name": name, "description": flag[0]} for name, flag in zip(names, flags, strict=True)],
        "featureStrategies": [
            {"name": "default", "featureName": name, "segments": [id_], "title": flag[0]}
            for name, flag in zip(names, flags, strict=True)
            for id_ in flag[1]
        ],
        "featureEnvironments": [{"name": name, "featureName": name, "enabled": True} for name in names],
        "featureTags": [{"featureName": name, "tagType": "simple", "tagValue": "web"} for name in names[::2]],
        "dependencies": [{"feature": name, "dependencies": [{"feature": names[parent]}]} for name, parent in asked],
        "links": [{"feature": name, "links": [{"url": "https://x.example"}]} for name in names[::3]],
        "segments": [{"id": number, "name": f"segment {number}"} for number in range(6)],
        "contextFields": [{"name": "region"}],
        "tagTypes": [{"name": "simple"}],
    }


@given(FLAGS, st.integers(700, 4000))
def test_pieces(flags: list[tuple[str, list[int], int]], limit: int) -> None:
    """Each is below the bound; each flag is in one, with its items in their order; a child is not before its parent."""
    data = data_of(flags)
    request = {"project": "default", "environment": "development", "data": data}
    names = [item["name"] for item in data["features"]]
    try:
        found = list(split_request(request, names, limit))
    except TooLargeError:
        assert limit < 2000, "a flag of these takes no more"
        return
    assert all(len(encode_json(piece.request)) < limit for piece in found)
    order = [name for piece in found for name in piece.names]
    assert sorted(order) == sorted(names)
    for item in data["dependencies"]:
        assert order.index(item["dependencies"][0]["feature"]) < order.index(item["feature"])
    for key, flag in FLAG_FIELDS.items():
        whole = [item for piece in found for item in piece.request["data"][key]]
        assert whole == sorted(data[key], key=lambda item: order.index(item[flag])), key
    for piece in found:
        used = {id_ for item in piece.request["data"]["featureStrategies"] for id_ in item["segments"]}
        assert {item["id"] for item in piece.request["data"]["segments"]} == used
        assert [item["name"] for item in piece.request["data"]["features"]] == piece.names


def test_as_few_as_can_be() -> None:
    """A piece takes flags while there is room for the next, and no more than a transaction should hold."""
    data = data_of([("x" * 100, [1], -1)] * (MAX_FLAGS + 10))
    request = {"project": "default", "environment": "development", "data": data}
    names = [item["name"] for item in data["features"]]
    assert [len(piece.names) for piece in split_request(request, names)] == [MAX_FLAGS, 10]
    small = list(split_request(request, names, 20_000))
    sizes = [len(encode_json(piece.request)) for piece in small]
    assert all(19_000 < size < 20_000 for size in sizes[:-1]), sizes
    assert [piece.names for piece in split_request(request, names[5:7])] == [names[5:7]], (
        "only those that are asked for"
    )


def test_long_chains_and_many_parents() -> None:
    """Parents are before their children, also in a circle; the time grows with the data set, not with its square."""
    names = [f"flag-{number}" for number in range(30_000)]
    chain = [{"feature": child, "dependencies": [{"feature": parent}]} for child, parent in pairwise(names)]
    assert list(parents_first({"dependencies": chain}, names)) == names[::-1]
    circle = [*chain, {"feature": names[-1], "dependencies": [{"feature": names[0]}]}]
    assert list(parents_first({"dependencies": circle}, names)) == names[::-1]
    family = [{"feature": names[0], "dependencies": [{"feature": parent} for parent in names[1:]]}]
    assert list(parents_first({"dependencies": family}, names)) == [*names[1:], names[0]]
