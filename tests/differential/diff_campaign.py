"""A run of the differential test: random documents and questions, then the targeted cases, and the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import diff_documents
import diff_exclusions
import diff_fixed
import diff_requests
from diff_compare import Difference, compare, reproduction
from diff_exclusions import EXCLUSIONS, Exclusion
from diff_pair import Pair, Reply
from diff_requests import Question

PIPELINED = 8
SHOWN = 12


@dataclass
class Figures:
    """What a run has compared and found."""

    answers: int = 0
    documents: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    mismatches: list[Difference] = field(default_factory=list)

    def line(self) -> str:
        """Return the figures in one line."""
        excluded = f"{sum(1 for row in EXCLUSIONS if self.excluded[row.name])} of {len(EXCLUSIONS)} exclusions occurred"
        return f"{self.answers} answers compared with the reference's, {len(self.mismatches)} mismatches, {excluded}"


@dataclass
class Campaign:
    """Asks both proxies the same questions and adds up the results."""

    pair: Pair
    seed: str
    trusting: bool = False
    figures: Figures = field(default_factory=Figures)

    def random(self, answers: int, per_document: int) -> None:
        """Ask at least `answers` random questions, `per_document` of them on each random document."""
        goal = self.figures.answers + answers
        while self.figures.answers < goal:
            self.document(self.figures.documents, per_document)

    def document(self, number: int, count: int) -> None:
        """Ask `count` questions on one random document."""
        document = diff_documents.document(self.seed, number)
        names = [feature["name"] for feature in document["features"]]
        self.pair.load(document)
        self.figures.documents += 1
        questions = diff_requests.questions(self.seed, number, names, count, trusting=self.trusting)
        for question, replies in self.ask(questions):
            self.note(compare(document, question, replies))

    def ask(self, questions: Sequence[Question]) -> list[tuple[Question, tuple[Reply, Reply]]]:
        """Return each question with both answers; the usual ones are sent in batches, the odd ones alone."""
        usual = [question for question in questions if not question.alone]
        batches = [usual[start : start + PIPELINED] for start in range(0, len(usual), PIPELINED)]
        answered = [pair for batch in batches for pair in zip(batch, self.pair.ask_all(batch), strict=True)]
        return answered + [(question, self.pair.ask(question)) for question in questions if question.alone]

    def fixed(self) -> None:
        """Ask the questions that every run asks once."""
        document = diff_exclusions.PLAIN
        self.pair.load(document)
        for question in diff_fixed.QUESTIONS:
            replies = self.pair.ask(question)
            self.note(compare(document, question, replies))

    def targeted(self, rows: Sequence[Exclusion] = EXCLUSIONS) -> None:
        """Ask for the subject of each exclusion, so that an outdated exclusion is noticed."""
        for row in rows:
            self.pair.load(row.document)
            for question in row.questions:
                replies = self.pair.ask(question)
                self.note(compare(row.document, question, replies, row.name))

    def note(self, differences: Sequence[Difference]) -> None:
        """Count an answer, and sort what differs into excluded and not."""
        self.figures.answers += 1
        for difference in differences:
            row = next((row for row in EXCLUSIONS if row.covers(difference)), None)
            if row:
                self.figures.excluded[row.name] += 1
            else:
                self.figures.mismatches.append(difference)

    def explain_mismatches(self) -> str:
        """Return the first mismatches as lines, one for each toggle of a document."""
        first: dict[object, Difference] = {}
        for found in self.figures.mismatches:
            first.setdefault((id(found.document), found.toggle) if found.toggle else str(found.question), found)
        return "\n".join(map(reproduction, list(first.values())[:SHOWN]))
