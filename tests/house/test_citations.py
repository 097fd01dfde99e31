"""Every citation in code names a heading of docs/contract/ or a decision that exists; docs/contract/README.md shows the form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = ROOT / "docs" / "contract"
DECISIONS = ROOT / "docs" / "decisions"
NAMED = ("specification", "behaviour", "dialects")
"""Pages whose headings are cited by their words."""
NUMBERED = "import validation"
"""The page whose headings are cited by their numbers."""
PLACES = ("src", "tests", "benchmarks", "examples", "docs/generate.py", "docs/observe.py")
OTHERS = ("tests/conformance/corpus/rules.json",)
PAGES = (*sorted(CONTRACT.glob("*.md")), ROOT / "ARCHITECTURE.md")

WRAP = re.compile(r"\n[ \t]*(?:#:?[ \t]|# ?$)?")
"""A line's end inside a citation, with the indentation and the comment sign of the next line."""
GROUP = re.compile(rf'(?:(?<=[("`])|(?<=;\s)|(?<=;))(?:(?:{"|".join(NAMED)}):|{NUMBERED}\s|decision\s)[^)"`]*')
"""Citations that stand together: from the first one to the end of the parentheses or of the text."""
SUSPECT = re.compile(
    rf"(?i)\b{NUMBERED}\b"
    rf"|\b(?:{'|'.join(NAMED)}|house)(?:\.md\b|:\s)"
    rf"|(?<!\w)\((?:{'|'.join(NAMED)}|house)\b(?!')"
    r"|\bdecisions? \d{4}\b|\bdecisions/\d{4}|\b0\d{3}-[a-z-]+\.md\b"
)
"""A citation in any form, right or wrong."""
CODE = re.compile(rf"(?m)^\s*(?:from [\w.]+ )?{NUMBERED}\b.*$|(?i:\bdialects): (?:Sequence|tuple)\[|\bin dialects:$")
"""Code that happens to have a page's name: an import, a parameter, the head of a loop."""
WORDS = re.compile(r"(?i)specification|behaviour|dialects|validation|house|decision|\b0\d{3}-")
"""One of these is in every citation; most files have none, and are passed over at once."""
NUMBERS = re.compile(r"(?m)^(?:\s*(\d+)\. |\| (\d+) \|)")
"""The items of a section: the numbers of a list, or the first column of a table."""
HEADING = re.compile(r"(?m)^##+ (.+)$")
REFERENCE = re.compile(r"(.+?)(?:, (?:point|step|rule|row)s? (\d+)(?: (and|to) (\d+))?)?$")


class Citation(NamedTuple):
    """One citation: its first line, its page, and the heading it names. A page that is empty is no page."""

    line: int
    page: str
    reference: str


def flat(text: str) -> str:
    """Return the text in one line, without the code that looks like a citation. Every character keeps its place."""
    return WRAP.sub(blank, CODE.sub(blank, text))


def blank(found: re.Match[str]) -> str:
    """Return as many blanks as a match has characters."""
    return " " * len(found[0])


def citations(text: str) -> Iterator[Citation]:
    """Give the citations of a text that are in the form; a page holds until another one is named."""
    if WORDS.search(text) is None:
        return
    for group in GROUP.finditer(flat(text)):
        page = ""
        for part in group[0].split(";"):
            words = " ".join(part.split())
            page, reference = split(words, page)
            yield Citation(text.count("\n", 0, group.start()) + 1, page, reference)


def split(words: str, page: str) -> tuple[str, str]:
    """Return the page that a citation names, or else the one before it, and what it names there."""
    for name in NAMED:
        if words.startswith(f"{name}:"):
            return name, words.removeprefix(f"{name}:").strip()
    for name in (NUMBERED, "decision"):
        if words.startswith(f"{name} "):
            return name, words.removeprefix(name).strip()
    return page, words


def malformed(text: str) -> Iterator[tuple[int, str]]:
    """Give line and beginning of each citation that is not in the form."""
    whole = flat(text)
    groups = [range(group.start() - 1, group.end()) for group in GROUP.finditer(whole)]
    for found in SUSPECT.finditer(whole):
        if not any(found.start() in group for group in groups):
            yield text.count("\n", 0, found.start()) + 1, " ".join(whole[found.start() : found.start() + 60].split())


def sections(page: Path) -> dict[str, set[int]]:
    """Return the headings of a page, each with the numbers of its items; a numbered heading goes by its number."""
    text = page.read_text(encoding="utf-8")
    found = list(HEADING.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    return {
        re.sub(r"^(\d+(?:\.\d+)?)\.? .*$", r"\1", each[1]): {
            int(first or second) for first, second in NUMBERS.findall(text[each.end() : end])
        }
        for each, end in zip(found, ends, strict=True)
    }


KNOWN = {name: sections(CONTRACT / f"{name.replace(' ', '-')}.md") for name in (*NAMED, NUMBERED)}
KNOWN["decision"] = {path.name[:4]: set() for path in DECISIONS.glob("[0-9]*.md")}


def problem(cited: Citation) -> str:
    """Return what is wrong with a citation; empty where it resolves."""
    if not cited.page:
        return "names no page"
    found = REFERENCE.match(cited.reference)
    if found is None:
        return "names no heading"
    heading, first, how, last = found.groups()
    if heading not in KNOWN[cited.page]:
        return f"there is no heading `{heading}`"
    numbers = set(range(int(first), int(last) + 1)) if how == "to" else {int(each) for each in (first, last) if each}
    missing = sorted(numbers - KNOWN[cited.page][heading])
    return f"`{heading}` has no item {missing[0]}" if missing else ""


def problems(text: str) -> list[str]:
    """Return what is wrong with the citations of a text, each with its line."""
    if WORDS.search(text) is None:
        return []
    wrong = [f"{cited.line}: {cited.page}: {cited.reference}: {found}" for cited in citations(text) if (found := problem(cited))]
    return wrong + [f"{line}: not in the form: {words}" for line, words in malformed(text)]


def sources() -> Iterator[Path]:
    """Give every file whose citations are checked. This file has broken citations on purpose, and is left out."""
    for place in PLACES:
        path = ROOT / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))
    yield from (ROOT / name for name in OTHERS)


@pytest.mark.parametrize("place", PLACES)
def test_citations_in_code_resolve(place: str) -> None:
    """Each citation names a heading, and nothing that looks like one is in another form."""
    mine = [path for path in sources() if path.is_relative_to(ROOT / place) and path != Path(__file__).resolve()]
    wrong = [f"{path.relative_to(ROOT)}:{found}" for path in mine for found in problems(path.read_text(encoding="utf-8"))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_citations_in_pages_resolve(page: Path) -> None:
    """The pages of the contract cite each other, and decisions, in the same form."""
    text = page.read_text(encoding="utf-8")
    assert [f"{each.line}: {each}" for each in citations(text) if problem(each)] == []


def test_headings_are_unique() -> None:
    """A heading that occurs twice on a page cannot be cited uniquely, and one with these signs cannot be cited at all."""
    for name in KNOWN.keys() - {"decision"}:
        text = (CONTRACT / f"{name.replace(' ', '-')}.md").read_text(encoding="utf-8")
        found = HEADING.findall(text)
        assert len(found) == len(set(found))
        assert not [each for each in found if re.search(r'[();"`]', each)]


def test_there_are_citations() -> None:
    """The finder finds citations: if the form changes, these tests must not pass with nothing to check."""
    cited = [each.page for path in sources() for each in citations(path.read_text(encoding="utf-8"))]
    assert {*NAMED, NUMBERED, "decision"} <= set(cited)
    assert len(cited) > 300


@pytest.mark.parametrize(
    "text",
    [
        "(behaviour: CORS)",
        "(specification: GET /proxy; POST /proxy; behaviour: CORS)",
        "(import validation 6.3, step 4; 7; decision 0028)",
        "(the real server's paths; import validation 4.1, rules 1 and 8)",
        "# a comment (behaviour:\n    # Documents that are not accepted)",
        '{"source": "behaviour: Hash"}',
        "the client specification, and what the specification's samples are",
        "from flagsvc.somewhere import validation",
    ],
)
def test_what_is_in_the_form(text: str) -> None:
    """Citations that resolve, alone and together, and words that are none."""
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("(behaviour: CORS; Colours)", "1: behaviour: Colours: there is no heading `Colours`"),
        ("\n(specification: GET /proxy and more)", "2: specification: GET /proxy and more: there is no heading"),
        ("(import validation 6.3, step 11)", "1: import validation: 6.3, step 11: `6.3` has no item 11"),
        ("(decision 9999)", "1: decision: 9999: there is no heading `9999`"),
        ("(import validation, 6.3)", "1: not in the form: import validation, 6.3"),
        ("Implements behaviour: CORS.", "1: not in the form: behaviour: CORS."),
        ("as behaviour.md has it", "1: not in the form: behaviour.md"),
        ("(house: one mutable cell)", "1: not in the form: (house: one mutable cell)"),
        ("by decision 0028", "1: not in the form: decision 0028"),
    ],
)
def test_what_is_not_in_the_form(text: str, wrong: str) -> None:
    """Each broken citation is reported with its line."""
    assert any(wrong in found for found in problems(text)), problems(text)
