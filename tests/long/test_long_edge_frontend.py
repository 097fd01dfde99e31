"""Our frontend API beside that of Unleash Edge, which the variable EDGE names: the same answers, but for tables of exclusions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import edge_malformed
import edge_targeted
import pytest
from edge_campaign import GENERATED, ROWS, TARGETED, USUAL, Campaign, Figures, Subject, subject
from edge_malformed import ODD, REFUSED
from edge_pair import Pair, pair
from peer_runs import edge_program

pytestmark = pytest.mark.long

SEED = "frontend"
DOCUMENTS = {GENERATED: 200, USUAL: 100}
CONTEXTS = 50
ENVIRONMENTS = 25
"""So many documents are loaded at once: Edge takes some seconds to see a new one."""
Note = Callable[[str, object], None]


@pytest.fixture(scope="module")
def both() -> Iterator[Pair]:
    program = edge_program()
    if not program:
        pytest.skip("the variable EDGE names no program")
    with pair(program, ENVIRONMENTS) as proxies:
        yield proxies


@pytest.fixture(scope="module")
def figures(both: Pair) -> Figures:
    campaign = Campaign(both)
    campaign.run([subject(SEED, number, CONTEXTS, kind) for kind, many in DOCUMENTS.items() for number in range(many)])
    campaign.run([Subject(TARGETED, edge_targeted.DOCUMENT, edge_targeted.QUESTIONS)])
    return campaign.figures


@pytest.fixture(scope="module")
def refused(both: Pair) -> list[tuple[str, str]]:
    """Give what Edge and ours answer from each of the documents that Edge refuses."""
    return edge_malformed.ask(both)


def test_each_flag_is_as_edge_answers(figures: Figures, record_property: Note) -> None:
    """Status, state, variant, payload and impression flag are Edge's, or what Edge says follows from rows of the table."""
    record_property("summary", "\n".join(["", *figures.lines()]))
    assert {kind: each.answers for kind, each in figures.kinds.items()} == {
        **{kind: many * CONTEXTS for kind, many in DOCUMENTS.items()},
        TARGETED: len(edge_targeted.QUESTIONS),
    }
    if figures.problems:
        pytest.fail(f"{len(figures.problems)} unexplained\n{figures.unexplained()}", pytrace=False)


@pytest.mark.parametrize("name", [name for name, *_ in ROWS])
def test_each_exclusion_occurs(figures: Figures, name: str) -> None:
    """A row that explains nothing any more must go."""
    assert figures.excluded()[name] > 0


@pytest.mark.parametrize("number", range(len(REFUSED)), ids=[row.name for row in REFUSED])
def test_documents_that_edge_refuses(refused: list[tuple[str, str]], number: int) -> None:
    """Edge keeps the former document, or ends the connection; ours answers from the new one."""
    assert refused[number] == (REFUSED[number].edge, REFUSED[number].ours)


def test_malformed_requests(both: Pair) -> None:
    """Statuses are Edge's, and what is read of a request, but for the requests of the table; each of those differs."""
    both.load([edge_malformed.DOCUMENT])
    asked = [(edge_malformed.row_of(request), question) for request, question in edge_malformed.questions()]
    found = [edge_malformed.problem_of(row, question, both.ask(0, question)) for row, question in asked]
    problems = [each for each in found if each]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
    assert {row.name for row, _ in asked if row} == {row.name for row in ODD}
