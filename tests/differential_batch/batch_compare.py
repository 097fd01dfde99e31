"""When two answers of the batch operations are the same, and what differs on purpose (import validation 0.1; 4.1; 7; 10)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.import_cases import UNORDERED
from support.processes import Answer

ELSEWHERE = "These features exist already in other projects: "
IDS = ("id",)


@dataclass(frozen=True)
class Asked:
    """One request to both servers, and what they answered: the state that the round began with, the operation, the body."""

    given: Any
    operation: str
    sent: Any
    real: Answer
    ours: Answer

    @property
    def statuses(self) -> tuple[int, int]:
        """The real server's status, and ours."""
        return self.real.status, self.ours.status


@dataclass(frozen=True)
class Exclusion:
    """Something that is answered otherwise on purpose; `sure` where a run of any length meets it, however the threads fall."""

    name: str
    why: str
    holds: Callable[[Asked], bool]
    sure: bool = True


def detail(answer: Answer) -> str:
    """Return the message of an error's first detail."""
    body = answer.json() if answer.body else {}
    return str(body["details"][0]["message"]) if body.get("details") else str(body.get("message", ""))


def missing_target(asked: Asked) -> bool:
    """Validate for a project or an environment that is not there, or an archived project."""
    return asked.operation == "validate" and asked.statuses == (200, 404) and asked.ours.json()["name"] == "NotFoundError"


def clear_instead_of_500(asked: Asked) -> bool:
    """What makes the real server fail."""
    return asked.operation == "import" and asked.real.status == 500 and asked.ours.status in (400, 409)


def one_of_several(asked: Asked) -> bool:
    """Several values are wrong: the real server checks all of them in parallel and reports any of them."""
    texts = (detail(asked.real), detail(asked.ours))
    errors = min(asked.statuses) >= 400 and texts[0] != texts[1]
    return asked.operation == "import" and errors and all(any(part in text for part in PARALLEL) for text in texts)


def limit_of_nothing(asked: Asked) -> bool:
    """A project that may have no feature: the real server does not see that while all that the project has is archived."""
    limits = {row["id"]: row.get("featureLimit") for row in asked.given["projects"]}
    target = asked.sent.get("project") if isinstance(asked.sent, dict) else None
    return asked.operation == "import" and LIMIT in detail(asked.ours) and limits.get(str(target)) == 0


def parent_elsewhere(asked: Asked) -> bool:
    """A parent in another project, to version 7.5.1."""
    return asked.operation == "import" and asked.statuses == (403, 404) and ELSEWHERE_7 in detail(asked.real)


def link_to_no_page(asked: Asked) -> bool:
    """A link with another scheme than http and https."""
    return asked.operation == "import" and asked.ours.status == 400 and "is no address of a web page" in detail(asked.ours)


def half_a_pair(asked: Asked) -> bool:
    """Half a surrogate pair in what is stored as JSON."""
    return asked.operation == "import" and asked.statuses == (500, 200) and "syntax for type json" in detail(asked.real)


def odd_order(asked: Asked) -> bool:
    """A sort order that is no whole number of 32 bits."""
    texts = ("syntax for type integer", "out of range for type integer")
    return asked.operation == "import" and asked.statuses == (500, 200) and any(text in detail(asked.real) for text in texts)


def refers_to_a_group(asked: Asked) -> bool:
    """A naming pattern with a reference to a group: ours checks no name against it."""
    return "it refers to a group" in asked.ours.text


ELSEWHERE_7 = "Parent and child features should be in the same project"
PARALLEL = (
    "is not specified as a legal value",
    "are not specified as legal values",
    "must contain at least 1 items",
    "must be a valid date",
    "Could not find environment",
    "There's no feature named",
)
"""Parts of the messages about strategies and environments, which the real server handles in parallel."""
LIMIT = "You have reached the maximum number of feature flags"

EXCLUSIONS = (
    Exclusion("404 for a missing target", "the specification lists it", missing_target),
    Exclusion("400 or 409 for what is a 500", "a caller can repair it", clear_instead_of_500),
    Exclusion("which of several errors is told", "ours is the first in the data", one_of_several, sure=False),
    Exclusion("a parent elsewhere is a 404", "as to version 8.2.0", parent_elsewhere),
    Exclusion("a sort order may be any number", "so it may at the single operation", odd_order),
    Exclusion(
        "a link is the address of a web page", "a page shows links, and `javascript:` would run", link_to_no_page, sure=False
    ),
    Exclusion("half a surrogate pair is U+FFFD", "as in all other texts", half_a_pair),
    Exclusion("a pattern with a reference checks no name", "no search of ours answers it", refers_to_a_group, sure=False),
    Exclusion("a limit of 0 holds", "validation reports it too", limit_of_nothing),
)


def excluded(asked: Asked) -> str:
    """Return the name of the exclusion that two answers fall under; empty for none."""
    return next((each.name for each in EXCLUSIONS if each.holds(asked)), "")


def comparable(operation: str, answer: Answer) -> Any:
    """Return what of an answer must be the same: without ids, and with what has no order sorted."""
    body = answer.json() if answer.body else None
    if answer.status == 200 and isinstance(body, dict):
        body = result(body) if operation == "validate" else exported(body)
    elif isinstance(body, dict):
        body = {name: sorted_list(value) for name, value in body.items() if name != "id"}
    return answer.status, "content-type" in answer.headers and answer.headers["content-type"].split(";")[0], body


def sorted_list(value: Any) -> Any:
    """Return a message, or details with one, that lists features of other projects: the list sorted."""
    if isinstance(value, list):
        return [{name: sorted_list(each) for name, each in item.items()} for item in value]
    start, mark, items = str(value).partition(ELSEWHERE)
    return start + mark + ", ".join(sorted(items.split(", ")))


def result(body: Any) -> Any:
    """Return the result of a validation with the items of unordered lists sorted."""
    for item in body["errors"] + body["warnings"]:
        if item["message"].startswith(UNORDERED):
            item["affectedItems"].sort()
    return body


def exported(body: Any) -> Any:
    """Return an export with segments named instead of numbered, without ids, each list sorted but features."""
    names = {row["id"]: row["name"] for row in body["segments"]}
    for row in body["featureStrategies"]:
        row["segments"] = sorted(names[each] for each in row["segments"])
    for row in body["dependencies"]:
        row["dependencies"].sort(key=text)
    for row in body["links"]:
        row["links"] = ordered(row["links"])
    return {kind: [plain(row) for row in rows] if kind == "features" else ordered(rows) for kind, rows in body.items()}


def ordered(rows: list[Any]) -> list[Any]:
    """Return rows without ids, sorted."""
    return sorted((plain(row) for row in rows), key=text)


def plain(row: Any) -> Any:
    """Return a row without its id."""
    return {name: value for name, value in row.items() if name not in IDS}


def text(value: Any) -> str:
    """Return a text to sort by."""
    return json.dumps(value, sort_keys=True)
