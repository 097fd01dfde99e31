"""Finds what the other server would refuse of a move, flag by flag, before anything is moved. Its requests change nothing.

The checks are those of `flagsvc import`, after the steps of the plan: what these create counts as there. The server itself judges
the values of constraints, because versions differ in what they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from flagsvc.cli.batch import session
from flagsvc.cli.batch.checking import ITEMS, UNANSWERED, coerce_request, flags_by_item, read_facts
from flagsvc.cli.batch.client import BATCH, AdminClient
from flagsvc.cli.batch.server_errors import AdminApiError, find_value, split_pointer
from flagsvc.cli.moving.planning import FLAG_FIELDS, MovePlan, Piece, ProjectEnvironment, without_flags
from flagsvc.cli.moving.resources import Json
from flagsvc.core.errors import FlagsvcError
from flagsvc.server.store.batch.dataset import DataSet, read_data_set
from flagsvc.server.store.batch.facts import Facts, ImportProblem, KnownContextField, KnownFeature
from flagsvc.settings.kinds import printable

CONSTRAINTS = "/api/admin/constraints/validate"
NO_FIELD = "flagsvc-move"
"""The context field in questions about values: one without legal values."""
KINDS_OF_ITEMS = dict(zip(ITEMS, ("strategy type", "context field", "segment", "flag"), strict=True))
"""Part of an error's message → the kind of thing that is missing: the title of a step, or a flag."""


class RefusedError(FlagsvcError):
    """The server would refuse a move for a reason that concerns no single flag."""


@dataclass
class Checker:
    """Checks a plan against its target."""

    plan: MovePlan
    target: AdminClient
    is_ours: bool = False
    answers: dict[str, str] = field(default_factory=dict)
    """What the server says of a constraint; empty if it takes it."""

    def problems(self) -> list[ImportProblem]:
        """Return the problems of the plan. Raises AdminApiError, RefusedError."""
        if not any(place.pieces for place in self.plan.places):
            return list(dict(self.refused_segments()).values())
        self.is_ours = self.target.takes_post(f"{BATCH}/import/dry-run", {})
        refused = dict(self.refused_segments())
        found = list(refused.values())
        for place in self.plan.places:
            known: set[str] = set()
            for piece in place.pieces:
                found += self.piece_problems(piece, place, known, refused)
                known.update(piece.names)
        return with_children(self.plan, found)

    def refused_segments(self) -> Iterator[tuple[str, ImportProblem]]:
        """Yield the segments of the plan that the server would refuse."""
        from flagsvc.server.store.batch.rules import place_of_constraint

        for step in self.plan.steps:
            if step.title != "segment":
                continue
            for each in (step.requests[0].body or {}).get("constraints") or ():
                if message := refusal_of_values(each) or self.constraint_refusal(each):
                    place = f"segment {step.name}, {place_of_constraint(each)}"
                    yield step.name, ImportProblem("constraint", "", place, message)
                    break

    def piece_problems(
        self, piece: Piece, place: ProjectEnvironment, known: set[str], refused: Mapping[str, ImportProblem]
    ) -> Iterator[ImportProblem]:
        """Yield the problems of some flags, each with its environment. `known` are flags that are moved before."""
        found = list(self.validation_problems(piece, place, known))
        request = without_flags(piece, {each.flag for each in found}).request
        names = {segment["id"]: segment["name"] for segment in request["data"]["segments"]}
        for strategy in request["data"]["featureStrategies"]:
            used = [names[number] for number in strategy.get("segments") or () if number in names]
            found += [refused[name]._replace(flag=strategy["featureName"]) for name in used if name in refused]
        coerced = coerce_request(request)
        if coerced is not None:
            data = read_data_set(coerced)
            found += self.import_problems(data, place, known)
            found += self.constraint_problems(data)
        for each in dict.fromkeys(found):
            yield each._replace(place=f"environment {place.environment}: {each.place}".rstrip(": "))

    def validation_problems(self, piece: Piece, place: ProjectEnvironment, known: set[str]) -> Iterator[ImportProblem]:
        """Yield the problems that the server's validation finds. It names one violation of the form at a time."""
        if self.makes("project", place.project):  # there is nothing to ask yet
            return
        while piece.names:
            try:
                lists = self.target.validate(piece.request)
            except AdminApiError as error:
                flag, message = violating_flag(error, piece.request)
                if not flag and error.kind in session.REJECTIONS:
                    raise RefusedError(str(error)) from None
                if not flag:
                    raise
                yield ImportProblem("form", flag, "", message)
                piece = without_flags(piece, {flag})
                continue
            for item in lists["errors"]:
                yield from self.listed_problems(item, piece, known)
            for item in lists["permissions"]:
                raise refusal(item)
            return

    def listed_problems(self, item: Mapping[str, Any], piece: Piece, known: set[str]) -> Iterator[ImportProblem]:
        """Yield the problems in one error of a validation. Raises RefusedError if it concerns no flag."""
        message = str(item["message"])
        kind = next((kind for word, kind in KINDS_OF_ITEMS.items() if word in message), "")
        users = flags_by_item(message, piece.request["data"])
        items = [str(each) for each in item["affectedItems"]]
        for each in items:
            flags = users.get(each) or [name for name in piece.names if each.partition(" (")[0] == name]
            if self.makes(kind, each) or (kind == "flag" and each in known):
                continue
            if not flags:
                raise refusal(item)
            for flag in flags:
                yield ImportProblem("validation", flag, f"{kind} {each}" if kind else "", message.rstrip(": "))
        if not items:
            raise refusal(item)

    def makes(self, title: str, name: str) -> bool:
        """Return whether a step of the plan creates something."""
        return any(step.title == title and step.name == name for step in self.plan.steps)

    def import_problems(self, data: DataSet, place: ProjectEnvironment, known: set[str]) -> list[ImportProblem]:
        from flagsvc.server.store.batch.rules import find_problems

        facts = read_facts(self.target, data, limited_storage=not self.is_ours)
        return [] if facts is None else find_problems(data, self.facts_of_plan(facts, place, known))[0]

    def facts_of_plan(self, facts: Facts, place: ProjectEnvironment, known: set[str]) -> Facts:
        """Return the facts as they are when a place is imported: after the steps, and with the flags in `known`."""
        added = self.makes("project environment", f"{place.environment} of {place.project}")
        revived = self.plan.revive.get(place.project, ())
        features = {name: KnownFeature(place.project) for name in known} | {
            name: each._replace(archived=each.archived and name not in revived, in_environment=each.in_environment or added)
            for name, each in facts.features.items()
        }
        bodies = [(step.title, step.name, step.requests[0].body or {}) for step in self.plan.steps if step.requests]
        fields = {
            name: KnownContextField(None, {each["value"] for each in body.get("legalValues") or ()})
            for title, name, body in bodies
            if title == "context field"
        }
        return replace(
            facts,
            features=features,
            unknown=facts.unknown | ({"environments"} if added or self.makes("project", place.project) else set()),
            tag_types=facts.tag_types | {name for title, name, _ in bodies if title == "tag type"},
            context_fields={**facts.context_fields, **fields},
        )

    def constraint_problems(self, data: DataSet) -> Iterator[ImportProblem]:
        """Yield the constraints whose value the server refuses."""
        from flagsvc.server.store.batch.rules import numbered_strategies, place_of_constraint

        for strategy, place in numbered_strategies(data):
            for each in strategy.get("constraints") or ():
                if not refusal_of_values(each) and (message := self.constraint_refusal(each)):
                    where = f"{place}, {place_of_constraint(each)}"
                    yield ImportProblem("constraint", strategy["featureName"], where, message)

    def constraint_refusal(self, constraint: Json) -> str:
        """Return why the server refuses the value of a constraint; empty for lists, and if it takes it or does not say."""
        from flagsvc.engine.operators import LISTS
        from flagsvc.server.store.constraints import family

        if family(constraint) in LISTS:
            return ""
        asked = constraint | {"contextName": NO_FIELD}
        text = repr(sorted(asked.items()))
        if text not in self.answers:
            self.answers[text] = self.ask(asked)
        return self.answers[text]

    def ask(self, constraint: Json) -> str:
        """Return what the server says of a constraint; empty if it takes it, or cannot say."""
        try:
            self.target.send("POST", CONSTRAINTS, constraint)
        except AdminApiError as error:
            if error.kind not in UNANSWERED:
                raise
            said = error.details[0].get("message", "") if error.details else str(error)
            return said.rstrip(".") if error.kind == "refused" else ""
        return ""


def refusal_of_values(constraint: Json) -> str:
    """Return why our own checks refuse the values of a constraint; empty if they take them."""
    from flagsvc.server.store.constraints import check_values
    from flagsvc.server.store.errors import refusal_text

    return refusal_text(check_values, [constraint])


def refusal(item: Mapping[str, Any]) -> RefusedError:
    things = ", ".join(printable(str(each)) for each in item["affectedItems"])
    return RefusedError(f"{printable(str(item['message']), 600).rstrip(': .')}{f': {things}' if things else ''}")


def violating_flag(error: AdminApiError, request: Json) -> tuple[str, str]:
    """Return the flag with the first violation of a form, and the message; empty if the error is no such violation."""
    for detail in error.details:
        path, message = detail.get("path", ""), detail.get("message", "")
        parts = split_pointer(path) if path.startswith("/") else find_value(path, message, request)
        if len(parts) > 2 and parts[0] == "data" and parts[1] in FLAG_FIELDS and parts[2].isdigit():
            [item] = request["data"][parts[1]][int(parts[2]) :][:1] or [{}]
            return str(item.get(FLAG_FIELDS[parts[1]], "")), message.rstrip(".")
    return "", ""


def with_children(plan: MovePlan, failing: Iterable[ImportProblem]) -> list[ImportProblem]:
    """Return the problems, and a problem for each child whose parent is new and cannot be moved."""
    found = list(failing)
    left = {each.flag for each in found}
    new = {change.name for place in plan.places for change in place.found.flags if change.kind == "new"}
    asked = [
        (row["feature"], parent["feature"])
        for place in plan.places
        for piece in place.pieces
        for row in piece.request["data"]["dependencies"]
        for parent in row["dependencies"]
    ]
    for child, parent in dict.fromkeys(asked):
        if parent in left & new and child not in left:
            found.append(ImportProblem("dependency", child, f"parent {parent}", "its parent cannot be moved"))
    return found


def leave_out(plan: MovePlan, problems: Iterable[ImportProblem]) -> None:
    """Take the flags and segments that have problems out of a plan."""
    names = {each.flag for each in problems} - {""}
    segments = {each.place.partition(",")[0] for each in problems if not each.flag}
    plan.steps = [step for step in plan.steps if f"{step.title} {step.name}" not in segments]
    plan.places = [place.without(names) for place in plan.places]
    for flags in (plan.revive, plan.archive):
        for project, some in flags.items():
            flags[project] = [name for name in some if name not in names]
