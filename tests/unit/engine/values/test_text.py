"""Text as JavaScript sees it."""

from __future__ import annotations

import random
import sys
import unicodedata

import pytest

from flagsvc.engine.values import text
from support import javascript

UNITS = "a,b ,;\t\n\u00a0\u0085\u001c\ufeff\u180e\u200b\u3000éΩ€😀\ud800\udc00\x00"


@pytest.mark.parametrize(
    ("written", "trimmed"),
    [
        ("  a b ", "a b"),
        ("\ufeffa\u2029", "a"),
        ("\u0085a\u001c", "\u0085a\u001c"),
        ("\u180ea", "\u180ea"),
        ("", ""),
        (text.SPACES, ""),
    ],
)
def test_trims_the_blanks_of_javascript(written: str, trimmed: str) -> None:
    """Blanks of the ECMAScript standard go, other control characters stay."""
    assert text.trim(written) == trimmed


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("", [""]), ("a", ["a"]), ("a,b", ["a", "b"]), (" a , b\t,\nc ", [" a", "b", "c "]),
        ("a,,b,", ["a", "", "b", ""]), (" , ", ["", ""]), (" ", [" "]), ("a b,c", ["a b", "c"]),
        (", ,", ["", "", ""]),
    ],
)  # fmt: skip
def test_splits_at_commas_with_the_blanks_beside_them(written: str, parts: list[str]) -> None:
    """Blanks beside a comma belong to it; those at the two ends of the list do not."""
    assert text.split_list(written) == parts


@pytest.mark.parametrize(
    ("written", "lowered"),
    [
        ("ABC", "abc"),
        ("İ", "i\u0307"),
        ("ΑΣ", "ας"),
        ("ΑΣΑ", "ασα"),
        ("Σ", "σ"),
        ("ẞ", "ß"),
        ("ǅ", "ǆ"),
        ("K", "k"),
        ("\U00010400", "\U00010428"),
    ],
)
def test_lowers_with_the_full_mapping(written: str, lowered: str) -> None:
    """A letter may become two, and a sigma at the end of a word the final one."""
    assert text.lower(written) == lowered


def generated(seed: int, count: int, alphabet: str = UNITS) -> list[str]:
    """Return random texts that hold no surrogate pair written as two code points (JSON would join them)."""
    draw = random.Random(seed)
    texts = ["".join(draw.choice(alphabet) for _ in range(draw.randint(0, 8))) for _ in range(count)]
    return [t for t in texts if "\ud800\udc00" not in t]


@pytest.mark.programs
def test_trims_splits_and_hashes_as_node_does() -> None:
    """trim, the comma split and the low bytes of random texts are those of node."""
    texts = generated(1, 20_000)
    units = "[...Array(t.length).keys()].map(i => t.charCodeAt(i) & 255)"
    answers = javascript.apply(f"t => [t.trim(), t.split(/\\s*,\\s*/), {units}]", texts)
    ours = [[text.trim(t), text.split_list(t), list(text.low_bytes(t))] for t in texts]
    wrong = [(t, mine, theirs) for t, mine, theirs in zip(texts, ours, answers, strict=True) if mine != theirs]
    assert not wrong, wrong[:10]


@pytest.mark.programs
def test_every_blank_of_node_is_one_of_ours() -> None:
    """Over the basic plane, what trim() removes is exactly the set of blanks here."""
    blanks = javascript.apply("c => String.fromCharCode(c).trim() === ''", list(range(0x10000)))
    assert {chr(c) for c, blank in enumerate(blanks) if blank} == set(text.SPACES)


@pytest.mark.programs
def test_lowers_every_assigned_letter_as_node_does() -> None:
    """Only code points that are newer than the Unicode version of one of the two may differ."""
    letters = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs")]
    answers = javascript.apply("t => /\\p{Cn}/u.test(t) ? null : t.toLocaleLowerCase()", letters)
    known = [(letter, answer) for letter, answer in zip(letters, answers, strict=True) if answer is not None]
    wrong = [(letter, answer) for letter, answer in known if text.lower(letter) != answer]
    assert len(known) > 100_000 and not wrong, wrong[:10]


@pytest.mark.programs
def test_lowers_a_sigma_by_its_place_as_node_does() -> None:
    """The final sigma depends on the surrounding letters. Random texts give the same result in both."""
    texts = generated(2, 20_000, "ΣσςaAİʰª1 .:'’\u00ad\u0301\u0345ǅ漢·_-\U0001d400")
    answers = javascript.apply("t => t.toLocaleLowerCase()", texts)
    wrong = [(t, answer) for t, answer in zip(texts, answers, strict=True) if text.lower(t) != answer]
    assert not wrong, wrong[:10]
