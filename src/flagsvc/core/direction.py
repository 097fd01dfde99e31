"""Texts of people inside sentences: one in a script from right to left changes the order of nothing around it.

`عرض 91 %` in a sentence without isolation moves the number, and what stands behind it. Where HTML can isolate, pages do it with
`bdi`; these characters do it in sentences that programs make, and in titles, options and names for screen readers.
"""

from __future__ import annotations

import re
from typing import Final
from unicodedata import bidirectional

START, END = "\u2068", "\u2069"
"""First strong isolate, pop directional isolate."""
RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN", "RLE", "RLO", "RLI"})
QUOTED: Final = re.compile("`([^`]*)`")


def isolate(text: str) -> str:
    """Return a text for a sentence: between isolates if it has anything that is written from right to left."""
    if text.isascii() or not any(bidirectional(each) in RIGHT_TO_LEFT for each in text):
        return text
    return f"{START}{text}{END}"


def isolate_marked(sentence: str) -> str:
    """Return a sentence with the texts between two `**` isolated instead of marked."""
    return "".join(isolate(part) if at % 2 else part for at, part in enumerate(sentence.split("**")))


def isolate_quoted(sentence: str) -> str:
    """Return a sentence with the texts between two backquotes isolated, too."""
    return QUOTED.sub(lambda found: f"`{isolate(found[1])}`", sentence)
