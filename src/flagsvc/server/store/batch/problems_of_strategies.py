"""What is wrong with one strategy of a data set: its constraints, variants and segments (import validation 6.3, step 7). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from flagsvc.http.shapes.text import number_text
from flagsvc.server.store.batch.dataset import DataSet, Json
from flagsvc.server.store.batch.facts import CheckedDataSet, ImportProblem
from flagsvc.server.store.batch.said import said
from flagsvc.server.store.checks import check_segment_count, prepared_variants
from flagsvc.server.store.constraints import check_legal_values, check_limits, check_values

LARGEST_ORDER = 2**31 - 1
"""The largest sort order that the real server's column holds."""


def strategy_problems(strategy: Json, place: str, look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give what is wrong with a strategy, which stands at `place`."""
    name = strategy["featureName"]
    constraints = strategy.get("constraints") or []
    for rule, message in (
        ("constraint", said(check_limits, constraints)),
        ("variants", said(prepared_variants, strategy.get("variants") or [])),
        ("sort-order", unsortable(strategy) if look.facts.narrow else ""),
        ("segment", undeclared(strategy, look.data)),
        ("segment", said(check_segment_count, strategy.get("segments") or [])),
    ):
        if message:
            yield ImportProblem(rule, name, place, message)
    for each in constraints:
        yield from constraint_problems(each, name, place, look.legal)


def constraint_problems(
    constraint: Json, name: str, place: str, legal: Mapping[str, Sequence[str]]
) -> Iterator[ImportProblem]:
    """Give what is wrong with one constraint: its values, or else that they are not legal."""
    place = f"{place}, constraint on {constraint['contextName']} ({constraint['operator']})"
    message = said(check_values, [constraint])
    if message:
        yield ImportProblem("constraint", name, place, message)
        return
    message = said(check_legal_values, [constraint | {"values": constraint.get("values", [])}], legal)
    if message:
        yield ImportProblem("legal-values", name, place, message)


def unsortable(strategy: Json) -> str:
    """Return what to say of a sort order that is no whole number of 32 bits, empty where it is one."""
    order = strategy.get("sortOrder")
    fits = order is None or (abs(order) <= LARGEST_ORDER and order == int(order))
    return "" if fits else f'"sortOrder" must be a whole number from -{LARGEST_ORDER} to {LARGEST_ORDER}'


def undeclared(strategy: Json, data: DataSet) -> str:
    """Return what to say of segments that the data set does not declare, empty where it declares all."""
    declared = {each["id"] for each in data.segments}
    unknown = [number for number in strategy.get("segments") or [] if number not in declared]
    return f"the data does not declare the segments it uses: {', '.join(map(number_text, unknown))}" if unknown else ""
