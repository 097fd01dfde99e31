"""Finds problems of one strategy: of its constraints, variants and segments (import validation 6.3, step 7). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from flagsvc.http.shapes.text import number_text
from flagsvc.server.store.batch.dataset import DataSet, Json
from flagsvc.server.store.batch.refusal_text import refusal_text
from flagsvc.server.store.batch.server_facts import CheckedDataSet, ImportProblem
from flagsvc.server.store.checks import check_segment_count, prepare_variants
from flagsvc.server.store.constraints import check_legal_values, check_limits, check_values

MAX_SORT_ORDER = 2**31 - 1
"""The largest sort order that the real server's column holds."""


def strategy_problems(strategy: Json, place: str, checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of a strategy; `place` names it in them."""
    name = strategy["featureName"]
    constraints = strategy.get("constraints") or []
    for rule, message in (
        ("constraint", refusal_text(check_limits, constraints)),
        ("variants", refusal_text(prepare_variants, strategy.get("variants") or [])),
        ("sort-order", sort_order_problem(strategy) if checked.facts.limited_storage else ""),
        ("segment", undeclared_segments_problem(strategy, checked.data)),
        ("segment", refusal_text(check_segment_count, strategy.get("segments") or [])),
    ):
        if message:
            yield ImportProblem(rule, name, place, message)
    for each in constraints:
        yield from constraint_problems(each, name, place, checked.legal)


def constraint_problems(
    constraint: Json, name: str, place: str, legal: Mapping[str, Sequence[str]]
) -> Iterator[ImportProblem]:
    """Yield problems of one constraint: invalid values, or else values that are not legal."""
    place = f"{place}, {place_of_constraint(constraint)}"
    message = refusal_text(check_values, [constraint])
    if message:
        yield ImportProblem("constraint", name, place, message)
        return
    message = refusal_text(check_legal_values, [constraint | {"values": constraint.get("values", [])}], legal)
    if message:
        yield ImportProblem("legal-values", name, place, message)


def place_of_constraint(constraint: Json) -> str:
    """Return the place of a constraint in its strategy or segment, for messages."""
    return f"constraint on {constraint['contextName']} ({constraint['operator']})"


def sort_order_problem(strategy: Json) -> str:
    """Return the message about a sort order that is not a 32-bit integer; empty if it is one."""
    order = strategy.get("sortOrder")
    fits = order is None or (abs(order) <= MAX_SORT_ORDER and order == int(order))
    return "" if fits else f'"sortOrder" must be a whole number from -{MAX_SORT_ORDER} to {MAX_SORT_ORDER}'


def undeclared_segments_problem(strategy: Json, data: DataSet) -> str:
    """Return the message about segments that the data set does not declare; empty if it declares all."""
    declared = {each["id"] for each in data.segments}
    unknown = [number for number in strategy.get("segments") or [] if number not in declared]
    return f"the data does not declare the segments it uses: {', '.join(map(number_text, unknown))}" if unknown else ""
