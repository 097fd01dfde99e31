"""A run beside Edge: documents and questions, the comparison of each flag in each answer, and the figures."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import edge_documents
from diff_fixed import Volatile, volatile
from diff_pair import Reply
from diff_requests import Question
from edge_documents import lists_all, named, questions
from edge_exclusions import EXCLUSIONS, Exclusion
from edge_pair import Json, Pair
from edge_reading import FORMS, Case, Outcome, agreed, as_ours, case_of, outcome_of
from edge_strategies import sticky_as_strategy

PIPELINED = 10
SHOWN = 8
ROWS = [*(row[:3] for row in EXCLUSIONS), *(row[:3] for row in FORMS)]
"""Name, reason and source of each row."""
GENERATED, USUAL, TARGETED = KINDS = "generated", "as flag servers send them", "made for rare rows"


class Subject(NamedTuple):
    """A document of a kind, and the questions about it."""

    kind: str
    document: Json
    questions: Sequence[Question]


def subject(seed: str, number: int, contexts: int, kind: str) -> Subject:
    """Return a document with so many questions, the same ones for the same seed and number."""
    is_usual = kind == USUAL
    document = (edge_documents.usual if is_usual else edge_documents.generated)(seed, number)
    names = [feature["name"] for feature in document["features"]]
    return Subject(kind, document, questions(seed, number, names, contexts, is_usual=is_usual))


@dataclass(frozen=True)
class Difference:
    """A flag about which two answers differ, and what is not explained about that. `is_drawn`: its variant is random."""

    name: str
    document: Json
    question: Question
    edge: Outcome | None
    ours: Outcome | None
    is_drawn: bool = False
    problem: str = ""

    def __str__(self) -> str:
        """Return the difference with all that is needed to see it again."""
        told = f"{self.name}: {self.problem}: Edge says {self.edge}, ours {self.ours}\n  {self.question}"
        return f"{told}\n  {json.dumps(self.document, ensure_ascii=False)}"


@dataclass
class Counts:
    """What was compared of documents of one kind."""

    documents: int = 0
    answers: int = 0
    equal_answers: int = 0
    flags: int = 0
    equal: int = 0
    equally_on: int = 0
    with_variant: int = 0
    drawn: int = 0
    random: int = 0
    excluded: Counter[str] = field(default_factory=Counter)


COLUMNS = (
    "documents",
    "answers",
    "answers without a difference",
    "flags compared",
    "equal",
    "of them on",
    "with a variant",
    "excluded",
    "compared without their random variant",
    "random, left out",
)


@dataclass
class Figures:
    """What a run has compared and found, by the kind of the documents."""

    kinds: dict[str, Counts] = field(default_factory=lambda: {kind: Counts() for kind in KINDS})
    problems: list[Difference] = field(default_factory=list)
    seconds: float = 0.0

    def excluded(self) -> Counter[str]:
        return sum((each.excluded for each in self.kinds.values()), Counter())

    def unexplained(self) -> str:
        """Return the first problem of each of some flags."""
        first: dict[object, Difference] = {}
        for each in self.problems:
            first.setdefault((id(each.document), each.name), each)
        return "\n".join(map(str, list(first.values())[:SHOWN]))

    def lines(self) -> list[str]:
        rows = [
            f"| {kind} | {each.documents} | {each.answers} | {each.equal_answers} | {each.flags} | {each.equal} "
            f"| {each.equally_on} | {each.with_variant} | {each.flags - each.equal} "
            f"| {each.drawn} | {each.random} |"
            for kind, each in self.kinds.items()
        ]
        table = [
            f"| {name} | {' | '.join(str(each.excluded[name]) for each in self.kinds.values())} | {reason} | {source} |"
            for name, reason, source in ROWS
        ]
        return [
            f"{len(self.problems)} unexplained, {self.seconds:.0f} s",
            *("", heading("kind", *COLUMNS), *rows, ""),
            *(heading("exclusion", *KINDS, "reason", "in"), *table),
        ]


def heading(*titles: str) -> str:
    """Return the first two lines of a table."""
    return f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"


@dataclass
class Campaign:
    """Asks both proxies the same questions, and adds up the results."""

    pair: Pair
    figures: Figures = field(default_factory=Figures)

    def run(self, subjects: Sequence[Subject]) -> None:
        """Ask about all documents, so many at once as there are environments."""
        start = time.monotonic()
        for first in range(0, len(subjects), self.pair.environments):
            part = subjects[first : first + self.pair.environments]
            self.pair.load([each.document for each in part])
            for number, each in enumerate(part):
                self.ask(number, each)
        self.figures.seconds += time.monotonic() - start

    def ask(self, number: int, subject: Subject) -> None:
        self.figures.kinds[subject.kind].documents += 1
        for at in range(0, len(subject.questions), PIPELINED):
            part = subject.questions[at : at + PIPELINED]
            for question, replies in zip(part, self.pair.ask_all(number, part), strict=True):
                self.compare(subject, question, replies)

    def compare(self, subject: Subject, question: Question, replies: tuple[Reply, Reply]) -> None:
        counts, document = self.figures.kinds[subject.kind], subject.document
        counts.answers += 1
        known = {each["name"] for each in document["features"]}
        names = {named(question)} if named(question) else known
        wanted = 200 if names <= known else 404
        if [reply.status for reply in replies] != [wanted, wanted]:
            self.figures.problems.append(Difference("", document, question, None, None, problem=f"{replies}"))
            return
        if wanted == 404:
            counts.equal_answers += 1
            return
        edge, ours = ({each["name"]: each for each in toggles(reply)} for reply in replies)
        random, before = random_flags(document, question), (counts.flags - counts.equal, len(self.figures.problems))
        counts.random += len(names & random.states)
        for name in sorted(names - random.states):
            found = Difference(name, document, question, *outcomes(edge, ours, name), name in random.variants)
            self.note(counts, found, (edge.get(name), ours.get(name)))
        counts.equal_answers += before == (counts.flags - counts.equal, len(self.figures.problems))
        if edge.keys() - known != ours.keys() - known:
            self.figures.problems.append(Difference("", document, question, None, None, problem=f"{replies}"))

    def note(self, counts: Counts, found: Difference, told: tuple[Json | None, Json | None]) -> None:
        """Count a flag as equal, as excluded by some rows, or as unexplained."""
        counts.flags += 1
        counts.drawn += found.is_drawn
        if seen(found, found.edge) != seen(found, found.ours):
            rows, problem = explain(found)
            counts.excluded.update(row.name for row in rows)
        else:
            counts.equal += 1
            counts.equally_on += found.ours is not None and found.ours.is_on
            counts.with_variant += found.ours is not None and found.ours.has_variant and not found.is_drawn
            problem = "" if found.is_drawn else counts_form(counts, *told)
        if problem:
            self.figures.problems.append(replace(found, problem=problem))


def outcomes(edge: Json, ours: Json, name: str) -> tuple[Outcome | None, Outcome | None]:
    theirs, mine = (outcome_of(each[name]) if name in each else None for each in (edge, ours))
    return theirs, mine


def seen(found: Difference, told: Outcome | None) -> Outcome | None:
    """Return what is compared of an outcome: all but a random variant."""
    return told._replace(variant="", has_variant=False, payload=None) if told and found.is_drawn else told


def counts_form(counts: Counts, edge: Json | None, ours: Json | None) -> str:
    """Count the rows by which a toggle of Edge becomes ours, and return what is wrong if it does not."""
    if edge is None or ours is None:
        return ""
    rewritten, names = as_ours(edge)
    counts.excluded.update(names)
    return "" if rewritten == ours else f"Edge writes {edge}, ours {ours}"


def toggles(reply: Reply) -> list[Json]:
    """Return the toggles of an answer: of a list, or the single one."""
    found = json.loads(reply.body)
    return list(found["toggles"]) if "toggles" in found else [found]


def random_flags(document: Json, question: Question) -> Volatile:
    """Return the flags whose state or variant is random in one of the two."""
    features = [each | {"strategies": list(map(sticky_as_strategy, each["strategies"]))} for each in document["features"]]
    present = agreed(question)
    read = (document, document | {"features": features})
    first, second = (volatile(each, present, named=False) for each in read)
    return Volatile(first.states | second.states, first.variants | second.variants)


def explain(found: Difference) -> tuple[list[Exclusion], str]:
    """Return the rows that explain a difference, and what is wrong if they do not."""
    case = case_of(found.document, found.question, found.name)

    def answer(rows: Sequence[Exclusion]) -> Outcome | None:
        told = changed(case, rows).evaluate()
        return seen(found, told) if lists_all(found.question) or told.is_on else None

    edge = seen(found, found.edge)
    if answer(()) != seen(found, found.ours):
        return [], f"the same in this process says {answer(())}"
    rows = [row for at, row in enumerate(EXCLUSIONS) if makes_a_change(case, at)]
    if answer(rows) != edge:
        return [], f"with {', '.join(row.name for row in rows)} ours says {answer(rows)}"
    needed = [row for row in rows if answer([each for each in rows if each is not row]) != edge]
    enough = [row for row in rows if answer([row]) == edge]
    return needed or enough[:1] or rows, ""


def changed(case: Case, rows: Sequence[Exclusion]) -> Case:
    for row in rows:
        case = row.change(case)
    return case


def makes_a_change(case: Case, at: int) -> bool:
    before = changed(case, EXCLUSIONS[:at])
    return not EXCLUSIONS[at].change(before).is_like(before)
