"""Whole explanations of random flags for random contexts agree with the evaluation, and what they suggest turns the answer.

`make test-long`; REASON_PAIRS=200000 is the number of flag and context pairs, REASON_SEED their seed. The figures are printed
with `-s`.
"""

from __future__ import annotations

import os
import random
import time

import diff_documents
import diff_requests
import pytest

from flagsvc.engine.compile import CompileOptions
from flagsvc.engine.context import Context
from flagsvc.proxy.api.query import read_query
from flagsvc.reasons.unfolded import Unfolded
from support.whole import check_whole

PAIRS = int(os.environ.get("REASON_PAIRS", "200000"))
SEED = os.environ.get("REASON_SEED", "reasons")
CONTEXTS = 8
"""Contexts for each document."""


def random_context(rng: random.Random) -> Context:
    """Return a context as random callers send it, at some time, with some seed of random draws."""
    asker = diff_requests.Asker(rng, [])
    asked = read_query(asker.query(asker.context()).encode())
    return asked.replace(now=rng.uniform(1.6e12, 1.8e12), entropy=rng.getrandbits(62))


@pytest.mark.long
def test_random_flags_and_contexts() -> None:
    """Outcome and variant are the served ones, with and without folding, and every change that is told turns the answer."""
    rng = random.Random(SEED)
    started = time.monotonic()
    pairs = changes = rollouts = documents = 0
    while pairs < PAIRS:
        document = diff_documents.document(SEED, documents)
        encoding = "utf8" if documents % 4 == 0 else "low-byte"
        made = Unfolded(document, CompileOptions(hostname="some-host", fold=documents % 2 == 0, hash_encoding=encoding))
        for _ in range(CONTEXTS):
            figures = check_whole(made, random_context(rng))
            pairs, changes, rollouts = pairs + figures.toggles, changes + figures.changes, rollouts + figures.rollouts
        documents += 1
    seconds = time.monotonic() - started
    print(f"\n{pairs} pairs, {documents} documents, {changes} changes and {rollouts} rollouts told, {seconds:.0f} s")
    assert changes > pairs / 50 and rollouts > pairs / 200
