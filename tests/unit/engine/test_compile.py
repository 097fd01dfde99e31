"""What compiling a document takes: time and memory that grow with the document, whatever its parts multiply."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from flagsvc.engine.compile import Compiled, CompileOptions, Compiler, compile_document
from flagsvc.engine.context import PROPERTY, Context
from flagsvc.engine.features import ParentToggle, Toggle, ToggleOutcome
from flagsvc.engine.predicates import FieldPredicate, Predicate, TextPredicate
from flagsvc.engine.run import Memory, Run
from flagsvc.engine.strategies import CompiledStrategy
from support import forms
from support.evaluating import constraint, feature, region, strategy


def compiled_both_ways(*features: dict[str, Any], segments: list[Any] | None = None) -> list[Compiled]:
    """Return a document compiled in slices, and at once."""
    document = {"features": list(features), "segments": segments or []}
    building = Compiler(CompileOptions()).begin_text(json.dumps(document).encode(), None)
    assert building is not None
    while not building.advance(4_096):
        pass
    return [building.compiled(), compile_document(document, CompileOptions())]


@pytest.mark.parametrize("in_strategies", [False, True])
@pytest.mark.parametrize("count", [100, 20_000])
def test_a_long_name_that_many_variants_repeat_is_a_problem(count: int, in_strategies: bool) -> None:
    """The answer of each variant has the name: a document of a megabyte would take gigabytes. Other features are served."""
    name = "a" * (5_000_000 // count)
    variants = [{"name": f"v{number}", "weight": 1} for number in range(count)]
    long = feature(name, strategy("default", variants=variants)) if in_strategies else feature(name, variants=variants)
    for compiled in compiled_both_ways(long, feature("b")):
        assert compiled.snapshot.names.keys() == {"b"}
        [problem] = compiled.problems
        told = f"must be shorter: {count} variants repeat its {len(name)} characters"
        assert (problem.path, problem.message) == ("features[0].name", told)


def test_a_shared_segment_is_read_once() -> None:
    """Strategies that list a segment fifty thousand times take no longer than its constraints and the lists together."""
    parts = [constraint("IN", field=f"f{number % 9}", values=[str(number)]) for number in range(5_000)]
    listed = [strategy("default", segments=[1] * 10_000) for _ in range(5)]
    started = time.monotonic()
    found = compiled_both_ways(feature("a", *listed), segments=[{"id": 1, "constraints": parts}])
    assert time.monotonic() - started < 10
    assert [compiled.problems for compiled in found] == [[], []]


OUTCOMES = [(False, None), (True, None), (True, "a"), (True, "b")]


@pytest.mark.parametrize(
    ("enabled", "variants", "accepted"),
    [
        (True, (), [False, True, True, True]),
        (True, ("a",), [False, False, True, False]),
        (True, ("disabled", "b", "other"), [False, True, False, True]),
        (False, (), [True, False, False, False]),
        (False, ("a",), [True, False, False, False]),
    ],
)
def test_outcomes_of_a_parent(enabled: bool, variants: tuple[str, ...], accepted: list[bool]) -> None:
    """Each outcome is accepted or not, without a table: thousands of children of as many variants would take gigabytes."""
    toggle = Toggle("p", [ToggleOutcome(state, variant, b"") for state, variant in OUTCOMES])
    parent = ParentToggle(toggle, enabled, frozenset(variants))
    assert [parent.accepts(number) for number in range(len(OUTCOMES))] == accepted


def test_a_long_text_in_the_place_of_variants() -> None:
    """A dependency looks for the variant of a parent in the text when it is drawn, and not for all variants before."""
    drawn = [{"name": f"v{number}", "weight": 1} for number in range(20_000)]
    parent = feature("p", strategy("default", constraint("IN", values=["eu"])), variants=drawn)
    child = {**feature("c"), "dependencies": [{"feature": "p", "variants": "x" * 1_000_000}]}
    started = time.monotonic()
    for compiled in compiled_both_ways(parent, child):
        assert compiled.snapshot.decide(region("eu"), "c") == (False, "disabled")
    assert time.monotonic() - started < 15


def test_many_strategies_that_never_decide() -> None:
    """Removed strategies are released in turn: recursion ended the compiled process after 300,000, a document of 2 MB."""
    number = 30_000 if forms.interpreted() else 300_000
    made = compile_document({"features": [feature("a", *[{}] * number)]}, CompileOptions())
    assert made.snapshot.decide(region("eu"), "a") == (False, "disabled")


def run(**fields: str) -> Run:
    """Return a run of a context with these fields."""
    return Run(Context(**fields), Memory(0, 0, False))  # type: ignore[arg-type]


def test_the_bare_nodes_hold_for_nobody() -> None:
    """A node without a rule admits no context."""
    assert not Predicate().holds(run())
    assert not FieldPredicate(PROPERTY, "a", False).holds(run())
    assert not TextPredicate(PROPERTY, "a", False, (), False).matches("x")
    assert not CompiledStrategy().active(run())
