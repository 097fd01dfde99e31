"""The whole explanation of a flag as a tree for a page: each step with its line, and the strategies with titles and ids."""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.reasons.steps import RolloutStep, Step, StrategyStep, VariantStep, WholeExplanation
from flagsvc.reasons.telling import tell
from flagsvc.server.store.checks import Json


def tree_of(whole: WholeExplanation, stored: Sequence[Json]) -> Json:
    """Return an explanation as a tree. `stored` are the active strategies of the flag, in order."""
    known = stored if len(stored) == len(whole.strategies()) else ()
    inputs = [name for name, took_part in (("the time", whole.by_time), ("chance", whole.by_chance)) if took_part]
    return {
        "enabled": whole.enabled,
        "variant": whole.variant,
        "decided": whole.decided,
        "steps": [step_of(each, known) for each in whole.steps],
        "turning": whole.turning_words(),
        "inputs": inputs,
        "explanation": whole.to_json(),
    }


def step_of(step: Step, stored: Sequence[Json]) -> Json:
    """Return a step and those inside; of a parent, the strategies have no ids."""
    inside: Sequence[Json] = () if step.kind == "dependency" else stored
    found: Json = {
        "kind": step.kind,
        "answer": step.answer,
        "reached": step.reached,
        "words": tell(step),
        "steps": [step_of(each, inside) for each in step.inner()],
        "bar": bar_of(step),
        "id": None,
    }
    if isinstance(step, StrategyStep):
        own = stored[step.place - 1] if step.place <= len(stored) else None
        title = "" if own is None or not own["title"] else f'"{own["title"]}": '
        found |= {"words": f"{step.place}. {title}{step.words}", "id": None if own is None else own["id"]}
    return found


def bar_of(step: Step) -> Json | None:
    """Return the picture of a draw: the share of a rollout and the bucket; None for other steps."""
    if isinstance(step, RolloutStep):
        return {"share": step.share, "bucket": step.bucket}
    if isinstance(step, VariantStep) and step.bucket is not None:
        drawn = next((each for each in step.ranges if each.name == step.drawn and each.last is not None), None)
        return None if drawn is None else {"total": step.total, "bucket": step.bucket}
    return None
