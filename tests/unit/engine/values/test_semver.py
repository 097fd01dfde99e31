"""Versions and their order."""

from __future__ import annotations

import random

import pytest

from flagsvc.engine.values import semver
from support import javascript

# The chain of the standard's own example (semver.org, 11.4), and beyond.
ORDER = [
    "0.0.0-0", "0.0.0", "1.0.0--", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
    "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.1.0", "1.2.0", "1.10.0", "2.0.0-9007199254740990",
    "2.0.0-9007199254740999", "2.0.0", "9007199254740991.0.0",
]  # fmt: skip

BARE = [
    "1.2.3",
    "0.0.0",
    "1.2.3-0",
    "1.2.3-0a.-.b-1",
    "1.2.3+001",
    "1.2.3-rc.1+b.2",
    "9007199254740991.9007199254740991.9007199254740991",
]

NEVER = [
    "", "1", "1.2", "1.2.", "1..3", ".2.3", "1.2.3.4", "01.2.3", "1.02.3", "1.2.03", "1.2.x", "1.2.3-", "1.2.3-01",
    "1.2.3-a..b", "1.2.3-a_b", "1.2.3+", "1.2.3+a..b", "1.2.3-é", "1.2.3x", "a.2.3", "1.a.3", "1,2,3",
    "9007199254740992.0.0", "0.99999999999999999999.0", "-1.2.3", "1.2.-3", "=1.2.3", "vv1.2.3", "V1.2.3", "v 1.2.3",
    "1.2 .3", "1.2.3-" + "a" * 251, " " * 252 + "1.2.3", "1.2.3\0", "\u00851.2.3", "1.2.3-a+b+c",
]  # fmt: skip


PARSED = {
    (True, True): [*BARE, " 1.2.3", "1.2.3\n", "\ufeff1.2.3", " v1.2.3", "1.2.3-" + "a" * 250],
    (False, True): ["v1.2.3", "v1.2.3-rc.1 ", "v1.2.3+b"],
    (False, False): NEVER,
}
"""Whether a text is a version in a context, and in a constraint → such texts."""


@pytest.mark.parametrize(("found", "written"), [(found, written) for found, texts in PARSED.items() for written in texts])
def test_which_texts_are_versions(found: tuple[bool, bool], written: str) -> None:
    """Blanks around a version are ignored. Only a constraint may write a `v`, which the reference looks for before it trims."""
    assert (semver.parse(written, lenient=False) is not None) is found[0]
    assert (semver.parse(written, lenient=True) is not None) is found[1]


def of(written: str) -> semver.SemVer:
    """Return the version in the text, which must be there."""
    version = semver.parse(written, lenient=True)
    assert version is not None
    return version


def test_versions_are_in_order() -> None:
    """Each version of the chain is before all that follow it and level with itself."""
    versions = [of(written) for written in ORDER]
    ours = [[semver.compare(left, right) for right in versions] for left in versions]
    assert ours == [[(left > right) - (left < right) for right in range(len(ORDER))] for left in range(len(ORDER))]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1.0.0+a", "1.0.0+b"), ("1.0.0", " v1.0.0+b"), ("1.0.0-a+1", "1.0.0-a"),
        ("1.0.0-9007199254740992", "1.0.0-9007199254740993"),
        ("1.0.0-90071992547409920.1", "1.0.0-90071992547409921.2"),
    ],
)  # fmt: skip
def test_level_versions(left: str, right: str) -> None:
    """Build metadata is ignored; numbers with the same double are equal, and decide."""
    assert semver.compare(of(left), of(right)) == 0 == semver.compare(of(right), of(left))


NUMBERS = [
    *["0", "1", "2", "10"] * 4,
    "01",
    "9007199254740991",
    "9007199254740992",
    "99999999999999999999999",
    "",
    "a",
    "-1",
    " 1",
]  # fmt: skip
IDENTIFIERS = [
    "0",
    "1",
    "01",
    "00",
    "alpha",
    "beta",
    "rc",
    "-",
    "--1",
    "1a",
    "0a",
    "A",
    "a.b",
    "é",
    "_",
    *[str(2**53 + step) for step in range(-2, 2)],
    "123456789012345678901234567890",
    "10",
    "9",
    "",
]  # fmt: skip


def almost_version(draw: random.Random) -> str:
    """Return something like a version."""
    written = ".".join(draw.choice(NUMBERS) for _ in range(draw.choice([3] * 9 + [1, 2, 4])))
    if draw.random() < 0.5:
        written += "-" + ".".join(draw.choice(IDENTIFIERS) for _ in range(draw.randint(1, 3)))
    if draw.random() < 0.2:
        written += "+" + ".".join(draw.choice(IDENTIFIERS) for _ in range(draw.randint(1, 3)))
    if draw.random() < 0.2:
        written = draw.choice(["v", " ", "v ", "  v", "=", "V", "vv", "\ufeff", "\u0085", " =v", "\n"]) + written
    if draw.random() < 0.1:
        written += draw.choice([" ", "\n", "x", "\u00a0", "\0", "-" + "a" * draw.randint(235, 255)])
    return written


@pytest.mark.programs
def test_reads_and_compares_as_npm_semver_does() -> None:
    """Random pairs, valid or not: both programs find the same versions and the same order."""
    draw = random.Random(6)
    pairs = [[almost_version(draw), almost_version(draw)] for _ in range(8_000)]
    valid = [written for pair in pairs for written in pair if semver.parse(written, lenient=True)][:2_000]
    pairs += [[draw.choice(valid), draw.choice(valid)] for _ in range(8_000)]
    function = """([bare, other]) => {
        const semver = require('semver')
        const left = semver.valid(bare) !== null && !bare.startsWith('v'), right = semver.valid(other) !== null
        return [left, right, left && right ? semver.compare(bare, other) : null]
    }"""
    wrong = []
    for (bare, other), answer in zip(pairs, javascript.apply(function, pairs, package="unleash-client"), strict=True):
        left, right = semver.parse(bare, lenient=False), semver.parse(other, lenient=True)
        ours = [left is not None, right is not None, semver.compare(left, right) if left and right else None]
        if ours != answer:
            wrong.append((bare, other, ours, answer))
    assert not wrong, wrong[:10]
