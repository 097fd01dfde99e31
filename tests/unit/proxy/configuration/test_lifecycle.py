"""The table of the configuration's status."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.core.errors import DocumentError, UpstreamError
from flagsvc.proxy.configuration.lifecycle import (
    POLL_EVENTS,
    TABLE,
    Action,
    Event,
    LifecycleStatus,
    Pace,
    State,
    advance,
    classify_document,
    classify_error,
)

KEY = {"R": Action.REPLACE, "k": Action.KEEP_ETAG, "d": Action.DROP_ETAG, "s": Action.SAVE, "h": Action.HOLD_BACK}

# event, pace (while cold a failure's is `soon`), then what follows in each state; behind it the actions by letter
STATES = ("cold", "restored", "bootstrapped", "fresh", "stale", "refused")
EXPECTED = """
restored      normal    restored:Rk      restored         bootstrapped    fresh      stale      refused
bootstrapped  normal    bootstrapped:Rd  bootstrapped:Rd  bootstrapped    fresh      stale      refused
fetched       normal    fresh:Rks        fresh:Rks        fresh:Rks       fresh:Rks  fresh:Rks  fresh:Rks
same          normal    cold             fresh:k          fresh:ks        fresh:k    fresh:k    fresh:k
not-modified  normal    cold             fresh            bootstrapped    fresh      fresh      fresh
empty         normal    fresh:Rks        restored:h       bootstrapped:h  fresh:h    stale:h    refused:h
unusable      back-off  cold             restored         bootstrapped    refused   refused   refused
refused       slow      cold             restored         bootstrapped    refused   refused   refused
failed        back-off  cold             restored         bootstrapped    stale      stale      stale
"""


def cells() -> list[tuple[State, Event, State, Pace, tuple[Action, ...]]]:
    """Return the expected table, one cell a row."""
    found = []
    for line in EXPECTED.strip().splitlines():
        event, usual, *row = line.split()
        for before, cell in zip(STATES, row, strict=True):
            after, _, letters = cell.partition(":")
            actions = tuple(KEY[letter] for letter in letters)
            pace = "soon" if before == "cold" and usual != "normal" else usual
            found.append((State(before), Event(event), State(after), Pace(pace), actions))
    return found


@pytest.mark.parametrize(("before", "event", "after", "pace", "actions"), cells())
def test_every_cell_of_the_table(before: State, event: Event, after: State, pace: Pace, actions: tuple[Action, ...]) -> None:
    """Every state and event lead where the contract says (specification: States and transitions; behaviour: Failures)."""
    assert TABLE[before, event] == (after, pace, actions)


def test_the_table_is_complete() -> None:
    """There is a cell for every pair, the expected table holds every pair, and there is nothing else."""
    pairs = set(itertools.product(State, Event))
    assert set(TABLE) == pairs == {(before, event) for before, event, *_ in cells()}


EVENTS = st.sampled_from(Event)
UPSTREAMS = (State.FRESH, State.STALE, State.REFUSED)


@given(st.lists(EVENTS))
def test_laws_of_every_history(history: list[Event]) -> None:
    """Readiness is never lost, only a poll's document replaces an upstream's, failures count up and end at once."""
    status = LifecycleStatus()
    for event in history:
        before, (status, step) = status, advance(status, event)
        assert before.state is State.COLD or status.state is not State.COLD
        if before.state in UPSTREAMS:
            assert status.state in UPSTREAMS
            assert Action.REPLACE not in step.actions or event is Event.FETCHED
        failures = 0 if step.pace is Pace.NORMAL else before.failures + 1
        assert status.failures == (failures if event in POLL_EVENTS else before.failures)
        assert (step.pace is Pace.SOON) == (status.state is State.COLD and step.pace is not Pace.NORMAL)
        assert (Action.SAVE in step.actions) <= (status.state is State.FRESH)


@given(st.lists(EVENTS))
def test_doubt_lasts_until_the_upstream_says_something_else(history: list[Event]) -> None:
    """A failure between two empty documents is no evidence; a 304 or a document with toggles is."""
    status = advance(advance(LifecycleStatus(), Event.FETCHED)[0], Event.EMPTY)[0]
    assert status.is_empty_pending
    for event in history:
        before, (status, _) = status, advance(status, event)
        if event in (Event.FETCHED, Event.SAME, Event.NOT_MODIFIED):
            assert not status.is_empty_pending
        elif event is not Event.EMPTY:
            assert status.is_empty_pending == before.is_empty_pending


@pytest.mark.parametrize(
    ("names", "served", "doubt", "event"),
    [
        (["a"], None, False, Event.FETCHED),
        (["a"], ["b"], False, Event.FETCHED),
        (["a"], ["b"], True, Event.FETCHED),
        ([], ["b"], False, Event.EMPTY),
        ([], ["b"], True, Event.FETCHED),
        ([], [], False, Event.FETCHED),
        ([], None, False, Event.EMPTY),
    ],
)
def test_classify_document(names: list[str], served: list[str] | None, doubt: bool, event: Event) -> None:
    """An empty document is held back once, and only if there were toggles. The table accepts it at a cold start."""
    assert classify_document(names, served, doubt) is event
    assert TABLE[State.COLD, Event.EMPTY].state is State.FRESH


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("unauthorized", Event.REFUSED),
        ("document", Event.UNUSABLE),
        ("network", Event.FAILED),
        ("not-found", Event.FAILED),
        ("throttled", Event.FAILED),
        ("server", Event.FAILED),
        ("unexpected", Event.FAILED),
    ],
)
def test_what_a_failure_is(kind: str, event: Event) -> None:
    """Every kind of UpstreamError is an event. Any other error is about the document."""
    assert classify_error(UpstreamError(kind, "x")) is event
    assert classify_error(DocumentError("features", "x")) is Event.UNUSABLE
