"""Whole explanations of any document agree with the evaluation, and sentences say nothing of a context."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import CompileOptions
from flagsvc.engine.context import Context
from flagsvc.reasons.steps import WholeExplanation
from flagsvc.reasons.unfolded import Unfolded
from flagsvc.reasons.whole import explain_whole
from fuzzing.documents import CONTEXTS, patched
from support.same_inputs import examples
from support.whole import check_whole

NOW_MS = 1_763_700_000_000.0
MARKED = Context(
    app_name="MARK-app",
    environment="MARK-environment",
    user_id="MARK-user",
    session_id="MARK-session",
    remote_address="MARK-address",
    properties={name: f"MARK-{name}" for name in ("a", "b", "c")},
)
"""A context whose values no document has."""


@settings(max_examples=examples(60))
@given(document=patched(), seed=st.integers(0, 2**62 - 1), fold=st.booleans())
def test_any_document(document: Any, seed: int, fold: bool) -> None:
    """Odd documents are refused as by the compiler, or every toggle comes out as in the evaluation."""
    try:
        made = Unfolded(document, CompileOptions(fold=fold))
    except DocumentError:
        return
    for context in CONTEXTS:
        check_whole(made, context.replace(now=NOW_MS, entropy=seed))


def sentences(explanation: WholeExplanation) -> list[str]:
    """Return the sentence of every step."""
    return [step.words for root in explanation.steps for step in root.walk()]


@settings(max_examples=examples(60))
@given(document=patched(), seed=st.integers(0, 2**62 - 1))
def test_no_sentence_has_anything_of_a_context(document: Any, seed: int) -> None:
    """The sentences are the same for every context, without any of its values. The values are only in fields of steps."""
    try:
        made = Unfolded(document, CompileOptions())
    except DocumentError:
        return
    told = [explain_whole(made, context.replace(entropy=seed)) for context in (MARKED, Context())]
    assert [sentences(each) for each in told[0]] == [sentences(each) for each in told[1]]
    assert "MARK" not in json.dumps([[*sentences(each), *each.turning_words()] for each in told[0]])
