"""Eight people who edit, switch and undo the same at the same time: nothing is overwritten unseen."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Row, select

from flagsvc.server.store.schema import events
from support.page_forms import PageClient
from support.processes import Answer

PEOPLE = 8
RULE = {"name": "flexibleRollout", "title": "first", "parameters": {"rollout": "25"}}
HERE = "/api/admin/projects/default/features/a/environments/development"
SECRETS = tuple(f"user:secret-of-person-{number}" for number in range(PEOPLE))
GIVEN: dict[str, Any] = {
    "users": [{"name": f"person-{number}", "rootRole": "editor"} for number in range(PEOPLE)],
    "tokens": [{"type": "personal", "user": f"person-{i}", "secret": secret} for i, secret in enumerate(SECRETS)],
    "features": [{"name": "a", "description": "first"}],
    "segments": [{"name": "beta", "description": "first", "constraints": []}],
}
KINDS = {
    "feature-metadata-updated": "description",
    "segment-updated": "segment",
    "feature-strategy-update": "strategy",
    "feature-environment-enabled": "switch",
    "feature-environment-disabled": "switch",
}
"""Type of event → what it changes."""
TEXT = {"description": "description", "segment": "description", "strategy": "title", "switch": "enabled"}
"""What is changed → the member of its events that tells the changes apart."""


class Attempt(NamedTuple):
    """A form that a person has loaded: its thing, the text it showed, and the typed text. An undo has the number of its event."""

    what: str
    send: Callable[[], Answer]
    seen: str = ""
    typed: str = ""
    number: int = 0


class Office:
    """Eight people at one server. In each round all of them load a page before the first one sends its form."""

    def __init__(self, pages: PageClient, pool: ThreadPoolExecutor) -> None:
        self.pages = pages
        self.pool = pool
        [rule] = pages.client.get(f"{HERE}/strategies").json()
        self.forms = {
            "description": ("/ui/flags/a/edit", "/edit"),
            "segment": ("/ui/segments/1", "/segments/1"),
            "strategy": (f"/ui/flags/a/development/strategies/{rule['id']}", rule["id"]),
        }
        self.done: list[tuple[Attempt, Answer]] = []

    def round(self, whats: Sequence[str], mark: str) -> list[tuple[Attempt, Answer]]:
        """Let each person load what `whats` says, and then send it; return what they tried and got."""
        tried = list(self.pool.map(lambda person: self.load(person, whats[person], f"{mark}-{person}"), range(PEOPLE)))
        got = list(zip(tried, self.pool.map(lambda attempt: attempt.send(), tried), strict=True))
        self.done += got
        return got

    def load(self, person: int, what: str, mark: str) -> Attempt:
        """Load a form: of an edit, a switch, or the undo of an event."""
        token = SECRETS[person]
        if what in self.forms:
            path, end = self.forms[what]
            form = self.pages.form(self.pages.get(path, token=token), end)
            sent = {TEXT[what]: mark}
            return Attempt(what, lambda: self.pages.press(form, "save", token=token, **sent), form.value(TEXT[what]), mark)
        if what in ("on", "off"):
            return Attempt("switch", lambda: self.pages.post(f"/ui/flags/a/development/{what}", token=token))
        number = self.numbers()[-int(what) :][0]
        return Attempt("undo", lambda: self.pages.post(f"/ui/history/{number}/undo", token=token), number=number)

    def events(self) -> list[Row[Any]]:
        """Return the events of what is changed here, in their order."""
        with self.pages.client.server.store.reading() as tx:
            query = select(events).where(events.c.type.in_(KINDS), events.c.way == "page").order_by(events.c.id)
            return list(tx.db.execute(query))

    def numbers(self) -> list[int]:
        """Return the numbers of the events."""
        return [row.id for row in self.events()]


@pytest.fixture
def office(pages: PageClient) -> Iterator[Office]:
    """Give eight people, and a flag with a strategy."""
    with ThreadPoolExecutor(PEOPLE) as pool:
        assert pages.client.post(f"{HERE}/strategies", RULE).status == 200
        yield Office(pages, pool)


def accepted(got: Sequence[tuple[Attempt, Answer]]) -> list[Attempt]:
    """Return the attempts that were accepted; each other one was refused as a conflict."""
    assert {answer.status for _, answer in got} <= {303, 409}, [answer.text for _, answer in got]
    return [attempt for attempt, answer in got if answer.status == 303]


@pytest.mark.parametrize("what", ["description", "segment", "strategy"])
def test_one_of_eight_is_first(office: Office, what: str) -> None:
    """Of eight who load the same form, one saves; each other one sees what the first did. So it is with eight who undo that."""
    got = office.round([what] * PEOPLE, "typed")
    [first] = accepted(got)
    for attempt, answer in got:
        assert attempt is first or first.typed in answer.text
    assert len(accepted(office.round(["1"] * PEOPLE, "undo"))) == 1
    assert [row.data[TEXT[what]] for row in office.events()] == [first.typed, "first"]


def test_nothing_is_overwritten_unseen(office: Office) -> None:
    """After rounds of edits, switches and undos each accepted change is in the history, from what its author saw or undid.

    The changes of each thing follow on each other without a gap, up to what is there now. A refused change is in no event.
    """
    chance = random.Random(16)  # the same rounds in each run
    choices = [*office.forms, "on", "off", *"123456"]
    office.round(["description", "segment", "strategy", "on"] * 2, "first")
    for number in range(6):
        office.round(chance.choices(choices, k=PEOPLE), f"round-{number}")
    rows = office.events()
    require_chains(office, rows)
    taken = accepted(office.done)
    assert len(taken) < len(office.done)
    for attempt, answer in office.done:
        ours = [row for row in rows if row.action in answer.headers.get("location", "-")]
        assert len(ours) <= 1
        if attempt.typed:
            told = [(row.before[TEXT[attempt.what]], row.data[TEXT[attempt.what]]) for row in ours]
            assert told == ([(attempt.seen, attempt.typed)] if attempt in taken else [])
        if attempt.number and attempt in taken:
            undone = next(row for row in rows if row.id == attempt.number)
            assert [(row.before, row.data) for row in ours] == [(undone.data, undone.before)]
    assert len(rows) == sum(row.action in answer.headers.get("location", "") for row in rows for _, answer in office.done)


def require_chains(office: Office, rows: Sequence[Row[Any]]) -> None:
    """Check that each change of a thing begins with the result of the change before. The thing is as after the last change."""
    chains: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        chains[KINDS[row.type]].append(row)
    assert set(chains) == set(TEXT)
    for chain in chains.values():
        for earlier, later in itertools.pairwise(chain):
            assert later.before == earlier.data
    flag = office.pages.client.get("/api/admin/projects/default/features/a").json()
    state = next(each for each in flag["environments"] if each["name"] == "development")
    [rule] = state["strategies"]
    there = {
        "description": flag["description"],
        "segment": office.pages.client.get("/api/admin/segments/1").json()["description"],
        "strategy": rule["title"],
        "switch": state["enabled"],
    }
    assert {what: chain[-1].data[TEXT[what]] for what, chain in chains.items()} == there
