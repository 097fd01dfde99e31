"""Our proxy beside the npm reference proxy: the same answers over HTTP, and every deliberate difference still there.

A run asks about random documents, then the questions that every run asks, then the targeted cases, and adds up the figures.
`DIFF_ANSWERS=200000` compares so many answers, `DIFF_SEED=7` those to other questions.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import diff_documents
import diff_exclusions
import diff_fixed
import diff_requests
import pytest
from diff_compare import ABSENT, Difference, compare, reproduction
from diff_exclusions import EXCLUSIONS, Exclusion, document
from diff_pair import Pair, Reply, pair
from diff_requests import Question

from support import class_ways

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


ANSWERS = int(os.environ.get("DIFF_ANSWERS", "3000"))
SEED = os.environ.get("DIFF_SEED", "continuous")
EMPTY = {"version": 2, "features": []}


@pytest.fixture(scope="module")
def both() -> Iterator[Pair]:
    """Give both proxies on one upstream server."""
    with pair(EMPTY) as proxies:
        yield proxies


@pytest.fixture(scope="module")
def campaign(both: Pair) -> Campaign:
    """Give the results of random questions, of the fixed ones, and of those for exclusions."""
    done = Campaign(both, SEED)
    done.random(ANSWERS, 75)
    done.fixed()
    done.targeted()
    return done


def test_answers_are_those_of_the_reference(campaign: Campaign, record_property: Callable[[str, object], None]) -> None:
    """Statuses, toggles, their order, state, variant and payload are the reference's, but for the exclusions."""
    record_property("summary", campaign.figures.line())
    assert campaign.figures.answers > ANSWERS
    expect_none(campaign)


def expect_none(done: Campaign) -> None:
    """Fail with reproductions when an answer differed."""
    if done.figures.mismatches:
        pytest.fail(f"{len(done.figures.mismatches)} mismatches\n{done.explain_mismatches()}", pytrace=False)


@pytest.mark.parametrize("row", EXCLUSIONS, ids=lambda row: row.name.replace(" ", "-"))
def test_each_exclusion_still_occurs(campaign: Campaign, row: Exclusion) -> None:
    """An exclusion that does not occur any more must be removed from the table."""
    assert campaign.figures.excluded[row.name] or not row.possible()


@pytest.mark.parametrize(
    "settings",
    [
        {"TRUST_PROXY": "true", "UNLEASH_ENVIRONMENT": "production"},
        {"TRUST_PROXY": "loopback, 192.168.0.0/16", "PROXY_BASE_PATH": ""},
        {"TRUST_PROXY": "false", "UNLEASH_APP_NAME": "web"},
    ],
    ids=["trusting-all", "trusting-some", "trusting-none"],
)
def test_answers_under_other_settings(settings: dict[str, str]) -> None:
    """The caller's address, the environment and the default application name come from the same place in both."""
    with pair(EMPTY, settings) as proxies:
        done = Campaign(proxies, f"settings {sorted(settings.items())}", trusting=settings["TRUST_PROXY"] != "false")
        done.random(450, 75)
        expect_none(done)


@pytest.mark.parametrize("way", [way for way in class_ways.OPTIONS if way != "as it comes"])
def test_classes_of_contexts_change_no_answer(way: str) -> None:
    """Answers are the reference's with programs of classes from the first request on, without them, and with little memory."""
    with pair(EMPTY, class_ways.variables(way)) as proxies:
        done = Campaign(proxies, "classes")
        done.random(450, 75)
        expect_none(done)
        metrics = proxies.ours.get("/internal-backstage/prometheus").text
    hits, misses, size = (
        sum(float(line.split()[1]) for line in metrics.splitlines() if line.startswith(f"flagsvc_class_cache_{name}"))
        for name in ("hits", "misses", "bytes")
    )
    assert (hits > 0, misses) == (way != "off", 0)
    assert size <= class_ways.OPTIONS[way].get("class_bytes", size)


def test_without_the_state_inside_a_variant_nothing_else_differs() -> None:
    """With the option off, as with FLAGSVC_URL, variants lack the state under both names, and all else is the reference's."""
    with pair(EMPTY, {"FLAGSVC_VARIANT_FEATURE_STATE": "false"}) as proxies:
        done = Campaign(proxies, "state")
        done.random(300, 75)
        kinds = {(found.field, found.ours) for found in done.figures.mismatches}
        assert kinds == {("variant.feature_enabled", ABSENT), ("variant.featureEnabled", ABSENT)}


def test_a_named_look_up_makes_up_no_session(both: Pair) -> None:
    """Without a sessionId a toggle that sticks to it is off in named look-ups, in both."""
    by_session = {"rollout": "40", "stickiness": "sessionId", "groupId": "g"}
    both.load(document({"name": "session", "strategies": [{"name": "flexibleRollout", "parameters": by_session}]}))
    asked = diff_fixed.question("POST", "", {"toggles": ["session"] * 20, "context": {}})
    for reply in both.ask(asked):
        assert [toggle["enabled"] for toggle in reply.toggles()] == [False] * 20
