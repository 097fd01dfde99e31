"""Whether texts of people are isolated on a page, so that a name from right to left moves nothing beside it."""

from __future__ import annotations

from html.parser import HTMLParser

FROM, TO = "\u2068", "\u2069"
"""The characters around an isolated text where no markup can stand."""
VOID = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "rect", "path", "polyline", "circle"})
SHOWN = ("title", "aria-label", "placeholder", "label")
"""Attributes that people read."""
TYPED = ("text", "search", "")


class Isolation(HTMLParser):
    """Reads a page. `found` are the places where `text` stands without isolation, `seen` counts all places where it stands."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.open: list[tuple[str, bool, list[str]]] = []
        self.found: list[str] = []
        self.seen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check the attributes of an element; a field with a text needs a direction of its own."""
        given = {name: value or "" for name, value in attrs}
        for name in SHOWN:
            self._check(given.get(name, ""), f"<{tag} {name}={given.get(name)!r}>")
        typed = tag == "textarea" or (tag == "input" and given.get("type", "") in TYPED)
        if typed and given.get("dir") != "auto" and "readonly" not in given and given.get("inputmode") != "numeric":
            self.found.append(f"<{tag} name={given.get('name')!r}> has no direction of its own")
        if tag not in VOID:
            self.open.append((tag, tag == "bdi" or given.get("dir") == "auto", []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check the attributes of an element without content."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        """Give a text to the innermost isolated element around it; check it if there is none."""
        for _, isolated, texts in reversed(self.open):
            if isolated:
                texts.append(data)
                return
        self._check(data, f"{' '.join(tag for tag, _, _ in self.open[-3:])}: {data.strip()!r}")

    def handle_endtag(self, tag: str) -> None:
        """Check the text of an isolated element: it is one text of people, and nothing else."""
        while self.open:
            name, isolated, texts = self.open.pop()
            whole = "".join(texts).strip() if isolated else ""
            for part in whole.split("\n") if name == "textarea" else (whole,):
                if part == self.text:
                    self.seen += 1
                else:
                    self._check(part, f"<{name}> {part!r}")
            if name == tag:
                return

    def _check(self, text: str, place: str) -> None:
        """Check that each occurrence in a text stands between isolates."""
        self.seen += text.count(self.text)
        if self.text in text.replace(f"{FROM}{self.text}{TO}", ""):
            self.found.append(place)


def not_isolated(page: str, text: str) -> tuple[list[str], int]:
    """Return the places of a page where a text of people is not isolated, and how often it stands there at all."""
    reader = Isolation(text)
    reader.feed(page)
    reader.close()
    return reader.found, reader.seen
