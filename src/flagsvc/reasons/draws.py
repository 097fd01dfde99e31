"""Random draws of a walk, and the step of a variant's draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from flagsvc.engine.model import VariantSpec
from flagsvc.engine.run import Run
from flagsvc.engine.variants import HASHES, NONE, VariantChoice
from flagsvc.reasons.steps import VariantRange, VariantStep
from flagsvc.reasons.words import variants_words


@contextmanager
def aside(run: Run, apart: bool) -> Iterator[None]:
    """Do a part of a walk. If it is `apart`, because an evaluation does not do it, its draws do not count."""
    draws = run.draws
    yield
    if apart:
        run.draws = draws


def redraw(run: Run, before: int, total: int) -> int | None:
    """Return the number, 1 to `total`, that was drawn after `before` draws; None if none was."""
    if run.draws == before:
        return None
    run.draws = before
    return int(run.draw(total))


def variant_step(
    run: Run, owner: str, specs: Sequence[VariantSpec], choice: VariantChoice | None, reached: bool
) -> VariantStep | None:
    """Return the step of a variant's draw; None without variants that have a weight, or if none is drawn."""
    if choice is None:
        return None
    override = next((each.field for each in choice.overrides if each.matches(run)), None)
    identifier = None if override is not None else choice.identifier(run)
    with aside(run, not reached):
        before = int(run.draws)
        index = int(choice.pick(run))
        drawn = redraw(run, before, HASHES if choice.uneven else choice.total)
    if index == NONE:
        return None
    bucket = None if choice.uneven else drawn
    if identifier is not None and not choice.uneven:
        bucket = int(choice.prefix.bucket(identifier, choice.total))
    return VariantStep(
        words=variants_words(specs, choice.field),
        answer=True,
        reached=reached,
        by_chance=drawn is not None,
        owner=owner,
        drawn=specs[index].name,
        group=choice.prefix.group,
        sticks_to=choice.field,
        field=None if identifier is None else source(choice, run),
        bucket=bucket,
        total=int(choice.total),
        override=override,
        ranges=ranges(specs, choice),
    )


def source(choice: VariantChoice, run: Run) -> str:
    """Return the field that the identifier of a draw came from."""
    if not choice.by_default:
        return choice.field
    return "userId" if run.context.user_id else "sessionId" if run.context.session_id else "remoteAddress"


def ranges(specs: Sequence[VariantSpec], choice: VariantChoice) -> tuple[VariantRange, ...]:
    """Return the buckets of each variant."""
    limits = {int(index): int(limit) for index, limit in zip(choice.indexes, choice.limits, strict=True)}
    found = []
    before = 0
    for at, spec in enumerate(specs):
        limit = limits.get(at)
        first = None if limit is None else before + 1
        before = before if limit is None else limit
        found.append(VariantRange(name=spec.name, weight=spec.weight, first=first, last=limit))
    return tuple(found)
