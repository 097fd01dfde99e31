"""Documents with one odd value: ours serves what the engine of the npm reference proxy serves, and fails on nothing.

The two engines are compared flag by flag, context by context.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import odd_documents
import pytest
from odd_documents import BASE, CONTEXTS, HOST, Odd, document, with_value

from flagsvc.engine.compile import Compiled, CompileOptions, Compiler
from flagsvc.engine.context import Context
from flagsvc.engine.source import Unusual
from flagsvc.engine.values import jsdate
from support import javascript

Json = dict[str, Any]
BATCH = 250
SHOWN = 12
FAILS, RANDOM, NO_FLAG = "fails", "random", "no flag"
COMPARED, ODD = "compared", "served though odd"
OPTIONS = CompileOptions(hostname=HOST, class_sightings=1)

REFERENCE = """
(() => {
  process.env.HOSTNAME = %s;
  const Client = require('unleash-client/lib/client').default;
  const Repository = require('unleash-client/lib/repository').default;
  const { defaultStrategies } = require('unleash-client/lib/strategy');
  const contexts = %s.map(each => ({ ...each, currentTime: new Date(each.currentTime) }));
  return document => {
    const repository = Object.create(Repository.prototype);
    repository.emit = () => true;
    try {
      repository.data = repository.convertToMap(document.features);
      repository.segments = repository.createSegmentLookup(document.segments);
    } catch (error) { return null; }
    const client = new Client(repository, defaultStrategies);
    client.on('error', () => {});
    const answer = (name, context) => {
      const enabled = client.isEnabled(name, context, () => false);
      const variant = enabled ? client.getVariant(name, context) : { name: 'disabled', enabled: false };
      const definition = repository.getToggle(name);
      return [!!enabled, !!variant.enabled, variant.name, variant.payload, !!definition.impressionData];
    };
    const told = (name, context) => {
      let drawn = false;
      Math.random = () => { drawn = true; return 0.5; };
      try {
        const said = answer(name, context);
        return drawn ? 'random' : said;
      } catch (error) { return 'fails'; }
    };
    return contexts.map(context => Object.fromEntries(Object.keys(repository.data).map(name => [name, told(name, context)])));
  };
})()
"""
"""A function of a document: for each context the flags with their state, variant, payload and impression data."""


class Answer(NamedTuple):
    """What is said of a flag in a context."""

    enabled: bool
    has_variant: bool
    variant: object
    payload: object
    impression: bool


class Difference(NamedTuple):
    """A flag of which the two do not say the same: `reference` and `ours` are an Answer, FAILS, RANDOM or NO_FLAG."""

    odd: Odd
    flag: str
    context: int
    reference: Any
    ours: Any

    def __str__(self) -> str:
        """Return the difference with all that is needed to see it again."""
        path = ".".join(map(str, self.odd.path))
        features = [each for each in self.odd.document["features"] if isinstance(each, dict) and each.get("name") == self.flag]
        said = f"{self.flag} in context {self.context}: the reference {self.reference}, ours {self.ours}"
        return f"{path} is {self.odd.value}: {said}\n  {json.dumps(features)}"


class Exclusion(NamedTuple):
    """A difference that is meant: its name, its reason, what it explains, and an odd value of BASE that brings it about."""

    name: str
    reason: str
    explains: Callable[[Difference], bool]
    path: odd_documents.Path
    value: str


@dataclass
class Figures:
    """What was compared and found. `counts` has answers by what came of them, and the features that ours served though odd."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def explain(self) -> str:
        """Return the counts, and the first differences, one for each kind of place and value."""
        first: dict[tuple[str, str], Difference] = {}
        for each in self.differences:
            first.setdefault((each.odd.place(), each.odd.value), each)
        return "\n".join([str(dict(self.counts)), *map(str, list(first.values())[:SHOWN])])


def run(odds: Sequence[Odd], exclusions: Sequence[Exclusion]) -> Figures:
    """Compare documents."""
    figures = Figures()
    function = REFERENCE % (json.dumps(HOST), json.dumps(CONTEXTS))
    for first in range(0, len(odds), BATCH):
        part = odds[first : first + BATCH]
        answers = javascript.apply(function, [each.document for each in part], package="unleash-client")
        for odd, told in zip(part, answers, strict=True):
            compare(odd, told, figures, exclusions)
    return figures


def compare(odd: Odd, told: list[Json] | None, figures: Figures, exclusions: Sequence[Exclusion]) -> None:
    """Compare all answers about a document, and add what is found to the figures."""
    compiled = compile_both(odd.document)
    figures.counts[ODD] += sum(each.served for each in compiled.problems)
    for number, flags in enumerate(told or ()):
        toggles = json.loads(compiled.snapshot.all(our_context(number)))["toggles"]
        ours = {each["name"]: answer_of(each, each["variant"]) for each in toggles}
        for name in flags | ours:
            theirs = flags.get(name, NO_FLAG)
            said = Answer(*theirs) if isinstance(theirs, list) else theirs
            note(Difference(odd, name, number, said, ours.get(name, NO_FLAG)), figures, exclusions)


def note(found: Difference, figures: Figures, exclusions: Sequence[Exclusion]) -> None:
    """Count an answer as equal, as one without a meaning, as excluded, or as a difference."""
    if found.reference in (FAILS, RANDOM):
        figures.counts[found.reference] += 1
        return
    figures.counts[COMPARED] += 1
    if found.reference == found.ours:
        return
    row = next((row for row in exclusions if row.explains(found)), None)
    if row:
        figures.counts[row.name] += 1
    else:
        figures.differences.append(found)


def answer_of(toggle: Json, variant: Json) -> Answer:
    """Return what a toggle of an answer says."""
    said = toggle["enabled"], variant["enabled"], variant["name"]
    return Answer(*said, variant.get("payload"), toggle["impressionData"])


def our_context(number: int) -> Context:
    """Return a context."""
    given = CONTEXTS[number]
    return Context(
        app_name=given["appName"],
        environment=given["environment"],
        user_id=given["userId"],
        session_id=given["sessionId"],
        remote_address=given["remoteAddress"],
        current_time=jsdate.parse(given["currentTime"]),
        properties=dict(given["properties"]),
        entropy=number,
    )


def compile_both(document: Json) -> Compiled:
    """Return the snapshot of a document. It is the same from its bytes, piece by piece."""
    compiler = Compiler(OPTIONS)
    whole = compiler(json.loads(json.dumps(document)))
    try:
        compilation = compiler.begin_text(json.dumps(document).encode(), None)
        if compilation is not None:
            while not compilation.advance(1):
                pass
            pieces = compilation.compiled()
            assert told(pieces) == told(whole)
    except Unusual:
        pass
    return whole


def told(compiled: Compiled) -> object:
    """Return what is compared of two snapshots of a document."""
    return [str(each) for each in compiled.problems], [compiled.snapshot.all(our_context(number)) for number in range(3)]


NAMES = ("features[]", "features[].name")


def payload(found: Difference) -> bool:
    """The payloads differ, and nothing else."""
    both = isinstance(found.reference, Answer) and isinstance(found.ours, Answer)
    return both and found.reference._replace(payload=None) == found.ours._replace(payload=None)


def variant_name(found: Difference) -> bool:
    """The reference gives a variant a name that is no text, and ours gives its text, or an empty one."""
    if not isinstance(found.reference, Answer) or not isinstance(found.ours, Answer):
        return False
    odd = found.reference.variant
    text = "" if odd is None or isinstance(odd, (list, dict)) else found.ours.variant
    same = found.ours._replace(variant=odd, payload=None) == found.reference._replace(payload=None)
    return not isinstance(odd, str) and found.ours.variant == text and same


def nameless(found: Difference) -> bool:
    """Ours does not serve what has no name."""
    return found.ours == NO_FLAG and found.odd.place() in NAMES


def no_variant(found: Difference) -> bool:
    """An item of the variants is a false value that is not null."""
    return found.odd.place().endswith(".variants[]") and found.odd.value in ("zero", "false", "an empty text")


def blank_stickiness(found: Difference) -> bool:
    """A stickiness is a list whose text is empty."""
    blank = found.odd.value in ("an empty list", "a list of null")
    return blank and found.odd.place().endswith(".stickiness")


def pattern(found: Difference) -> bool:
    """A pattern is no text."""
    holder: Any = found.odd.document
    for each in found.odd.path[:-1]:
        holder = holder[each]
    is_value = found.odd.place().endswith(".constraints[].value")
    return is_value and holder["operator"] == "REGEX" and not isinstance(holder.get("value"), str)


EXCLUSIONS = (
    Exclusion(
        "a payload is an object of type and value, both text",
        "the specification's payload is always that, or not there; the reference passes on what the document has",
        payload, ("features", 4, "variants", 0, "payload"), "a text"
    ),
    Exclusion(
        "the name of a variant is a text",
        "the specification's variant always has one; the reference passes on what the document has, or leaves the name out",
        variant_name, ("features", 4, "variants", 0, "name"), "a number"
    ),
    Exclusion(
        "what has no name is no flag",
        "no SDK can ask for it; the reference lists it under a name such as `undefined`",
        nameless, ("features", 0, "name"), "null"
    ),
    Exclusion(
        "a variant that is zero, false or an empty text is none",
        "the others are drawn by their weights; the reference gives everyone the first of them",
        no_variant, ("features", 4, "variants", 0), "zero"
    ),
    Exclusion(
        "a stickiness that is an empty list is the default",
        "the reference looks for a property with an empty name, which a context does not have",
        blank_stickiness, ("features", 3, "strategies", 0, "parameters", "stickiness"), "an empty list"
    ),
    Exclusion(
        "a pattern is a text",
        "another value matches nothing; the reference remembers patterns by their texts, so the answer depends on earlier ones",
        pattern, ("features", 24, "strategies", 0, "constraints", 0, "value"), "a list of null"
    ),
)  # fmt: skip


USUAL, MANY = 150, 10_000
Record = Callable[[str, object], None]


def check(seed: str, count: int, record_property: Record) -> None:
    """Compare so many documents, most of which have an odd value that is named."""
    figures = run([document(seed, number) for number in range(count)], EXCLUSIONS)
    record_property("summary", str(dict(figures.counts)))
    if figures.differences:
        pytest.fail(figures.explain(), pytrace=False)
    assert figures.counts[COMPARED] > 150 * count and figures.counts[ODD] > count / 4


def test_an_odd_value_is_served_as_by_the_reference(record_property: Record) -> None:
    """Every flag has the same state, variant and payload in each context where the reference answers, but for the exclusions."""
    check("continuous", USUAL, record_property)


@pytest.mark.long
def test_many_odd_values(record_property: Record) -> None:
    """The same with ten thousand documents."""
    check("long", MANY, record_property)


@pytest.mark.parametrize("row", EXCLUSIONS, ids=lambda row: row.name.replace(" ", "-"))
def test_each_exclusion_still_occurs(row: Exclusion) -> None:
    """An exclusion that does not occur any more must be removed from the table."""
    odd = with_value(copy.deepcopy(BASE), row.path, row.value)
    assert run([odd], [row]).counts[row.name]


def test_only_what_has_no_name_is_left_out() -> None:
    """Of 100 documents no flag with a name is left out, and each that is odd is named with the path of the value."""
    for number in range(100):
        odd = document("names", number)
        for problem in compile_both(odd.document).problems:
            assert problem.served or odd.place() in ("features[]", "features[].name", "segments[]", "segments[].id"), odd
            assert problem.path.startswith(("features[", "segments["))
