"""Writes the generated pages: the options of both programs, and the list in README.md. `make docs` runs it."""

from __future__ import annotations

from pathlib import Path

from flagsvc.settings.options import OPTIONS
from flagsvc.settings.render import default_text, reference, sections
from flagsvc.settings.server import server_reference

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- options: written by `make docs` -->", "<!-- /options -->"


def option_list() -> str:
    """Return the options as one table: name, variables, default, and the first sentence of what it means."""
    rows = ["| Option | Variable | Default | Meaning |", "|---|---|---|---|"]
    for section, options in sections(OPTIONS):
        rows.append(f"| **{section}** | | | |")
        for option in options:
            reads = ", ".join(f"`{name}`" for name in option.reads) or "in code only"
            meaning = option.help.split("; ")[0].replace("|", "\\|")
            rows.append(f"| `{option.name}` | {reads} | {default_text(option)} | {meaning} |")
    return "\n".join(rows)


def readme(text: str) -> str:
    """Return README.md with the list of options as the table has it now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{option_list()}\n{END}{after}"


def main() -> None:
    """Write the pages."""
    folder = ROOT / "docs" / "reference"
    (folder / "options.md").write_text(reference())
    (folder / "server-options.md").write_text(server_reference())
    page = ROOT / "README.md"
    page.write_text(readme(page.read_text()))


if __name__ == "__main__":
    main()
