"""A run remembers its own results, and nothing from another run."""

from __future__ import annotations

from flagsvc.engine.context import PROPERTY, REMOTE_ADDRESS, SESSION_ID, USER_ID, Context
from flagsvc.engine.predicates import FieldPredicate, Predicate, TextPredicate
from flagsvc.engine.run import Memory, Run
from flagsvc.engine.strategies import CompiledStrategy


def run(**fields: str) -> Run:
    """Return a run of a context with these fields."""
    return Run(Context(**fields), Memory(0, 0, False))  # type: ignore[arg-type]


def test_an_identifier_is_made_once() -> None:
    """All requests for a field get the same identifier, with its blocks."""
    one = run(user_id="7", session_id="s", remote_address="r")
    for kind, field in ((USER_ID, "userId"), (SESSION_ID, "sessionId"), (REMOTE_ADDRESS, "remoteAddress")):
        assert one.identify(kind, field) is one.identify(kind, field)
    assert one.user_or_session() is one.identify(USER_ID, "userId")


def test_properties_are_identifiers_of_their_own() -> None:
    """Each property has its own identifier; an absent or empty one has none."""
    one = Run(Context(properties={"a": "x", "b": "x", "c": ""}), Memory(0, 0, False))
    assert one.identify(PROPERTY, "a") is one.identify(PROPERTY, "a")
    assert one.identify(PROPERTY, "a") is not one.identify(PROPERTY, "b")
    assert one.identify(PROPERTY, "c") is one.identify(PROPERTY, "d") is one.user_or_session() is None


def test_draws_are_spread_evenly() -> None:
    """Over many seeds every number comes up about as often as any other, first draw and second."""
    counts = [[0] * 10, [0] * 10]
    for seed in range(5000):
        drawing = Run(Context(entropy=seed << 20), Memory(0, 0, False))
        for row in counts:
            row[drawing.draw(10) - 1] += 1
    assert all(400 < count < 600 for row in counts for count in row)


def test_the_bare_nodes_hold_for_nobody() -> None:
    """A node without a rule admits no context."""
    assert not Predicate().holds(run())
    assert not FieldPredicate(PROPERTY, "a", False).holds(run())
    assert not TextPredicate(PROPERTY, "a", False, (), False).matches("x")
    assert not CompiledStrategy().active(run())
