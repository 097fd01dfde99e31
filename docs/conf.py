"""The site of these pages: Sphinx reads the Markdown where it is, and writes a folder for each version. `make site` runs it."""

from __future__ import annotations

import json
import math
import re
import shutil
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from docutils import nodes
from pygments.lexers.shell import BashLexer
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs" / "site"
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
SECTIONS = {
    "Tutorial": ["docs/how-to/first-day"],
    "How to move over": ["docs/how-to/move-over-*", "docs/how-to/move-*"],
    "How to run the flag server": [
        f"docs/how-to/{name}" for name in ("run-the-*", "use-the-*", "set-*", "sign-*", "several-*", "webhooks", "back-*")
    ],
    "How to run both": [
        *(f"docs/how-to/{name}" for name in ("container", "kubernetes", "systemd", "tls-*", "runbook")),
        "deploy/*",
    ],
    "How to run the proxy": ["docs/reference/installing", "docs/how-to/[!m]*", "docs/how-to/mount-*"],
    "Reference": ["docs/reference/*", "docs/contract/README", "docs/glossary", "CHANGELOG"],
    "Explanation": ["ARCHITECTURE", "SECURITY", "docs/*/README", "CONTRIBUTING", "docs/how-to/make-a-release"],
}
"""The sections of the navigation, and their pages: a page stands in the first section that has a pattern for it."""
KINDS = {
    "docs/how-to/make-a-release": 0.3,
    "docs/how-to/*": 1,
    "docs/reference/*": 0.8,
    "deploy/*": 0.8,
    "README": 0.8,
    "docs/contract/*": 0.4,
    "docs/glossary": 0.4,
    "*": 0.3,
}
"""What a page is worth in the search by its kind: the first pattern counts."""
TITLE, HEADING, BEGINNING, EXAMPLE = 30, 10, 3, 0.5
"""How often a word counts in the title of a page, a heading, above the second heading, and an example; elsewhere it counts once."""

project, copyright = "flagsvc", "the flagsvc maintainers"
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/**.md", "deploy/**.md"]
root_doc = "README"
myst_heading_anchors = 6
nitpicky = True
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": ""})]
templates_path = ["site/templates"]
html_search_scorer = str(SITE / "rank.js")
html_sidebars = {
    "**": [f"sidebar/{part}.html" for part in ("brand", "search", "versions", "scroll-start", "navigation", "scroll-end")]
}


def add_contents(app: Sphinx, page: str, text: list[str]) -> None:
    """Give the first page all sections, and the README of another folder the pages of that folder, for the navigation."""
    if page == root_doc:
        left = sorted(app.env.found_docs - {page})
        for title, patterns in SECTIONS.items():
            found = dict.fromkeys(each for pattern in patterns for each in left if fnmatch(each, pattern))
            left = [each for each in left if each not in found]
            text[0] += contents(title, *found)
    elif fnmatch(page, "docs/*/README"):
        text[0] += contents("Pages", "*")


def contents(title: str, *pages: str) -> str:
    """Return the Markdown of a table of contents that only the navigation shows."""
    return "\n".join(["", "", "```{toctree}", ":hidden:", ":glob:", f":caption: {title}", *pages, "```"])


def link_to_the_source(app: Sphinx, tree: nodes.document) -> None:
    """Let the links to folders, and to files that are no pages, lead to the repository."""
    for link in list(tree.findall(lambda node: isinstance(node, (addnodes.download_reference, addnodes.pending_xref)))):
        path, whole = app.env.relfn2path(link["reftarget"])
        if isinstance(link, addnodes.download_reference) or Path(whole).is_dir():
            link.replace_self(nodes.reference("", "", *link.children, refuri=f"{SOURCE}/blob/main/{path}"))


def load_weights(app: Sphinx, page: str, *_: object) -> None:
    """Load the weights of words in the page that searches."""
    if page == "search":
        app.add_js_file("weights.js")


def count_words(tree: nodes.document, split: Callable[[str], list[str]], stem: Callable[[str], str]) -> dict[str, float]:
    """Return the words of a page as the search knows them, and how often they count."""
    counts: defaultdict[str, float] = defaultdict(float)
    headings = 0
    for node in tree.findall(nodes.Text):
        headings += isinstance(node.parent, nodes.title)
        for word in split(node.astext().lower()):
            counts[stem(word)] += worth(node.parent, headings)
    return counts


def worth(place: nodes.Element, headings: int) -> float:
    """Return how often a word counts in a place of a page, below a number of headings."""
    if isinstance(place, nodes.title):
        return TITLE if headings == 1 else HEADING
    if isinstance(place, nodes.literal_block):
        return EXAMPLE
    return BEGINNING if headings == 1 else 1


def write_weights(app: Sphinx) -> None:
    """Write what each word is worth in each page: the more, the oftener the page has it, and the fewer pages have it."""
    lang = app.builder.indexer.lang
    stem = cache(lang.stem)
    counts = {page: count_words(app.env.get_doctree(page), lang.split, stem) for page in sorted(app.env.found_docs)}
    spread = Counter(word for found in counts.values() for word in found)
    mean = sum(sum(found.values()) for found in counts.values()) / len(counts)
    weights: dict[str, dict[int, int]] = {}
    for number, (page, found) in enumerate(counts.items()):
        kind = next(factor for pattern, factor in KINDS.items() if fnmatch(page, pattern))
        for word, often in found.items():
            rarity = math.log(1 + len(counts) / spread[word])
            weights.setdefault(word, {})[number] = round(
                100 * kind * rarity * often / (often + 20 + 3 * sum(found.values()) / mean)
            )
    (app.outdir / "_static" / "weights.js").write_text(f"const WEIGHTS = {json.dumps(weights, separators=(',', ':'))}\n")


def write_versions(site: Path) -> None:
    """Write which versions a site has, the newest first, with the pages of each, and a first page that leads to the newest."""
    folders = sorted((each.parent for each in site.glob("*/index.html")), key=lambda each: numbers(each.name), reverse=True)
    pages = {each.name: sorted(str(page.relative_to(each)) for page in each.rglob("*.html")) for each in folders}
    (site / "versions.js").write_text(f"const VERSIONS = {json.dumps(pages)}\n")
    (site / "index.html").write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={folders[0].name}/index.html">\n')


def numbers(version: str) -> list[int]:
    """Return the numbers of a version; a version without numbers, such as `main`, is the oldest."""
    return [int(each) for each in re.findall(r"\d+", version)]


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write what the site has beside the pages."""
    if not error:
        write_weights(app)
        shutil.copy(app.outdir / "README.html", app.outdir / "index.html")
        write_versions(app.outdir.parent)


def setup(app: Sphinx) -> None:
    """Connect what this site adds to Sphinx. The folder of the site is named by the version."""
    app.config.version = app.outdir.name
    app.config.html_title = f"{project} {app.outdir.name}"
    app.add_lexer("env", BashLexer)
    app.connect("source-read", add_contents)
    app.connect("doctree-read", link_to_the_source, priority=0)
    app.connect("html-page-context", load_weights)
    app.connect("build-finished", finish)
