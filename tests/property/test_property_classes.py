"""Programs of classes of contexts answer as an evaluation does: the same bytes, faults and draws, for any course of requests.

A data set in pieces: for all data sets, each piece is small enough, and together they are the data set.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flagsvc.cli.batch.client import encode_json
from flagsvc.cli.moving.planning import FLAG_FIELDS, MAX_FLAGS, TooLargeError, parents_first, split_request
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN
from flagsvc.engine.lists import Lists
from flagsvc.engine.projects import restrict
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.api.wire_format import FrontendShape
from support.evaluating import classes_of
from support.same_inputs import examples
from support.tagged import FIELDS, TEXTS, TIMES, custom, documents

SHAPE = FrontendShape()
SMALL = 4000
"""A bound that holds one or two programs, which drive each other out."""
WAYS = ((1 << 30, 1), (1 << 30, 2), (SMALL, 1), (1, 1))
"""Bounds in bytes, with the sightings after which a class gets a program."""
ODD: tuple[object, ...] = (5, None, b"1", "x" * 200)


@dataclass(frozen=True)
class Given:
    """A context to be made for each of the snapshots, because an evaluation may change one."""

    own: tuple[tuple[str, str], ...]
    properties: tuple[tuple[str, object], ...]
    time: float | None
    now: float
    entropy: int

    def context(self) -> Context:
        properties: Any = dict(self.properties)
        return Context(**dict(self.own), properties=properties, current_time=self.time, now=self.now, entropy=self.entropy)


OWN = ("app_name", "environment", "user_id", "session_id", "remote_address")
texts = st.sampled_from([text for text in TEXTS if text])
values = st.one_of(texts, texts, texts, texts, st.sampled_from(ODD))
contexts = st.builds(
    Given,
    st.dictionaries(st.sampled_from(OWN), texts, max_size=4).map(lambda found: tuple(found.items())),
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=4).map(lambda found: tuple(found.items())),
    st.sampled_from([None, None, *TIMES, float("nan")]),
    st.sampled_from(TIMES),
    st.integers(0, (1 << 62) - 1),
)


class Side:
    """A course of snapshots with one pair of options, and what its evaluations raised. `bare` takes the classes out of each."""

    def __init__(self, limit: int, sightings: int, bare: bool = False) -> None:
        self.bare = bare
        self.options = CompileOptions(custom_strategies=custom(3), hostname="here", class_bytes=limit, class_sightings=sightings)
        self.compiler = Compiler(self.options)
        self.snapshot: Snapshot | None = None
        self.part: Snapshot | None = None

    def take(self, document: dict[str, Any]) -> None:
        """Compile a document after the one before, and the part of it for callers of one project."""
        compilation = self.compiler.begin_text(json.dumps(document).encode(), self.snapshot)
        assert compilation is not None
        while not compilation.advance(500):
            pass
        self.snapshot = compilation.compiled().snapshot
        if self.bare:
            self.snapshot.lists = Lists(self.snapshot.memory)
        self.part = restrict(self.snapshot, frozenset({"p"}))

    def answers(self, given: Given) -> list[object]:
        """Return the list answers to a context, in two shapes, whole and in part, and the faults."""
        assert self.snapshot is not None and self.part is not None
        found: list[object] = []
        for snapshot in (self.snapshot, self.part):
            for shape in (PLAIN, SHAPE):
                found += [snapshot.enabled(given.context(), shape), snapshot.all(given.context(), shape)]
        faults = self.snapshot.take_faults()
        return [*found, [(fault.kind, fault.name, type(fault.error)) for fault in faults]]


def in_projects(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with every second feature in a project."""
    features = [each | ({"project": "q"} if at % 2 else {}) for at, each in enumerate(document["features"])]
    return document | {"features": features}


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(documents().map(in_projects), min_size=1, max_size=3), st.lists(contexts, min_size=1, max_size=8))
def test_programs_answer_as_evaluations_do(course: Sequence[dict[str, Any]], asked: Sequence[Given]) -> None:
    """Whatever the documents and the contexts, and however small the memory, answers and faults are those without programs."""
    judge, bare, sides = Side(0, 2), Side(1 << 30, 1, bare=True), [Side(*way) for way in WAYS]
    for document in course:
        for side in (judge, bare, *sides):
            side.take(document)
        for each in (*asked, *asked):
            right = judge.answers(each)
            for side in (bare, *sides):
                assert side.answers(each) == right
    for side in sides:
        assert side.snapshot is not None
        classes = classes_of(side.snapshot)
        assert classes.size <= classes.limit
        assert classes.size == sum([each.size for each in classes.known.values()])


TEXTS_OF_PIECES = st.text(st.characters(codec=None), max_size=40)
"""Texts of any characters, also halves of surrogate pairs."""
FLAGS = st.lists(st.tuples(TEXTS_OF_PIECES, st.lists(st.integers(0, 5), max_size=3), st.integers(-1, 30)), max_size=25)
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
    """Each piece is below the bound. Each flag is in one piece, with its items in their order. A child is not before its parent."""
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
    assert [piece.names for piece in split_request(request, names[5:7])] == [names[5:7]], "only those that are asked for"


def test_long_chains_and_many_parents() -> None:
    """Parents are before their children, also in a circle; the time grows with the data set, not with its square."""
    names = [f"flag-{number}" for number in range(30_000)]
    chain = [{"feature": child, "dependencies": [{"feature": parent}]} for child, parent in pairwise(names)]
    assert list(parents_first({"dependencies": chain}, names)) == names[::-1]
    circle = [*chain, {"feature": names[-1], "dependencies": [{"feature": names[0]}]}]
    assert list(parents_first({"dependencies": circle}, names)) == names[::-1]
    family = [{"feature": names[0], "dependencies": [{"feature": parent} for parent in names[1:]]}]
    assert list(parents_first({"dependencies": family}, names)) == [*names[1:], names[0]]
