"""The rows as text: the flags and their help, the reference page, and the masked dump of what is in effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flagsvc.settings.environments import TABLE, rows_for
from flagsvc.settings.kinds import BOOLEAN
from flagsvc.settings.load_environments import part_of
from flagsvc.settings.names import DIVIDED
from flagsvc.settings.option import ALIAS, FILE_FLAG, FILE_NAME, FILE_VARIABLE, PREFIX, Option, Scope, Section
from flagsvc.settings.places import Resolved
from flagsvc.settings.table import BY_NAME, OPTIONS
from flagsvc.settings.unread import CONFIG_VARIABLES

if TYPE_CHECKING:
    from argparse import ArgumentParser, _ArgumentGroup

NOTES = {
    Section.EXPERIMENTAL: "May change or vanish at any time, outside the semantic versioning.",
}

ADVANCED = "Advanced"
ADVANCED_NOTE = "Hardly any deployment sets these. Their defaults are good."
"""The heading of the options that are advanced, and what stands below it."""

UNITS = {"MS": " ms", "SECONDS": " s"}
"""What stands behind a number, by what stands for it in the help."""

ROW = "flagsvc_option"
"""The attribute of an argument that comes from an option: the option's name, or the title of a group beside the sections."""

SCOPES = {Scope.PROCESS: "–", Scope.INHERITED: "may differ", Scope.OWN: "its own"}
"""What the reference page says about the environments of an option."""

COLUMNS = ("Option", "Variable", "Flag", "Default", "Takes", "Meaning")
"""The columns of a reference page."""
PER_ENVIRONMENT = "Per environment"
"""The further column of a page with options that may differ between environments."""

DEFAULT = "default"
"""The source of a value that is not given."""

WIDEST = 44
"""Values longer than this do not push the column of sources further to the right."""


def sections(options: Iterable[Option]) -> Iterator[tuple[Section, list[Option]]]:
    """Yield each section that has any of `options`, with them."""
    options = list(options)
    for section in Section:
        rows = [option for option in options if option.section is section]
        if rows:
            yield section, rows


def parts(options: Iterable[Option]) -> Iterator[tuple[bool, list[tuple[Section, list[Option]]]]]:
    """Yield the sections of the options that deployments set, then of the advanced ones, and whether they are advanced."""
    options = list(options)
    for advanced in (False, True):
        found = list(sections(option for option in options if option.advanced is advanced))
        if found:
            yield advanced, found


def in_effect(resolved: Resolved, options: Sequence[Option] = OPTIONS, width: int = 0) -> str:
    """Return every option with its value, secrets masked, and where the value came from, as aligned text.

    What is wider than a terminal of `width` columns has its source in a line of its own; 0 is no terminal.
    """
    rows = {option.name: row_text(option, resolved) for option in options if is_shown(option, resolved)}
    lines = dict(zip(rows, _aligned(list(rows.values()), width), strict=True))
    shown = [option for option in options if option.name in rows]
    blocks = ("\n".join([section.value, *(lines[each.name] for each in group)]) for section, group in sections(shown))
    return "\n\n".join([*blocks, *_environments(resolved, width)])


def what_is_set(resolved: Resolved, options: Sequence[Option] = OPTIONS, width: int = 0) -> str:
    """Return the same of the options that are not at their defaults or not right, and how many others there are."""
    shown = [option for option in options if is_shown(option, resolved)]
    odd = [option for option in shown if resolved.sources[option.name] != DEFAULT or option.name in resolved.problems]
    rest = len(shown) - len(odd)
    lines = [*_aligned([row_text(option, resolved) for option in odd], width), ""] if odd else []
    parts = "".join(f"{block}\n\n" for block in _environments(resolved, width))
    return "\n".join([*lines, f"{parts}{rest} {'other ' * bool(odd)}options have their defaults: --all shows them"])


def _environments(resolved: Resolved, width: int) -> Iterator[str]:
    """Yield a block for each environment, with the options that are its own."""
    for name, values in resolved.values.get(TABLE, ()):
        part = part_of(resolved, name, values)
        own = [row for row in rows_for(name) if part.sources[row.name] != DEFAULT or row.name in part.problems]
        yield "\n".join([f"[{TABLE}.{name}]", *_aligned([row_text(row, part) for row in own], width)])


def _aligned(rows: Sequence[tuple[str, str, str]], width: int) -> list[str]:
    """Return names, values and sources as lines in columns; in a narrow terminal a source has a line of its own."""
    names = max((len(name) for name, _, _ in rows), default=0)
    values = max((len(value) for _, value, _ in rows if len(value) <= WIDEST), default=0)
    lines = [f"  {name:{names}}  {value:{values}}  {source}".rstrip() for name, value, source in rows]
    if not width or max(map(len, lines), default=0) <= width:
        return lines
    gap = " " * (names + 4)
    return [f"  {name:{names}}  {value}" + (f"\n{gap}{source}" if source else "") for name, value, source in rows]


def folded(text: str, width: int) -> str:
    """Return a text in lines that fit a terminal of `width` columns, those behind the first indented; 0 is no terminal."""
    import textwrap

    if not width:
        return text
    return textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def is_shown(option: Option, resolved: Resolved) -> bool:
    """Return whether an option is part of the dump: one for code only, or deprecated and not given, is not."""
    return not option.in_code_only and not (option.deprecated and resolved.sources[option.name] == DEFAULT)


def row_text(option: Option, resolved: Resolved) -> tuple[str, str, str]:
    """Return the name, the value as text and the source of one option."""
    source = resolved.sources[option.name]
    if option.name in resolved.problems:
        return (option.name, "(missing)", "") if source == DEFAULT else (option.name, "(refused)", source)
    value = with_unit(option, option.render(resolved.values[option.name]))
    return option.name, f"({option.default_text})" if value == "-" and option.default_text else value, source


def with_unit(option: Option, text: str) -> str:
    """Return a number as text with its unit behind it: `5000 ms`, `75 s`; any other text as it is."""
    return f"{text}{UNITS.get(option.kind.metavar, '')}" if text.lstrip("-").isdigit() else text


def as_json(resolved: Resolved, rows: Sequence[Option] = OPTIONS) -> str:
    """Return the same as one JSON object: options with value and source, warnings, problems."""
    import json

    parts = {name: _shown_values(part_of(resolved, name, values)) for name, values in resolved.values.get(TABLE, ())}
    found = {
        "options": _shown_values(resolved, rows),
        **({TABLE: parts} if parts else {}),
        "warnings": resolved.warnings,
        "problems": list(resolved.problems.values()),
    }
    return json.dumps(found, indent=2, ensure_ascii=False)


def _shown_values(resolved: Resolved, rows: Sequence[Option] = DIVIDED) -> dict[str, object]:
    """Return the value and the source of each option by its name."""
    return {
        option.name: {
            "value": None if option.name in resolved.problems else option.masked(resolved.values[option.name]),
            "source": resolved.sources[option.name],
        }
        for option in rows
        if is_shown(option, resolved)
    }


def default_text(option: Option) -> str:
    """Return the default as the documentation tells it, the same on every machine."""
    if option.default_text or option.required:
        return option.default_text or "none, required"
    text = option.render(option.default)
    return "unset" if text == "-" else text


def variable_names(option: Option) -> list[str]:
    """Return the variables as the documentation names them: without the aliases, and without those of files."""
    return [name for name, holds_path in option.variables if not holds_path and not name.startswith(ALIAS)]


def add_options(parser: ArgumentParser, names: Collection[str] | None = None, rows: Sequence[Option] = OPTIONS) -> None:
    """Add the flags of all options, or of those of `names`, in groups; `given_flags` reads them from the result."""
    chosen = [option for option in rows if not option.in_code_only and (names is None or option.name in names)]
    for advanced, found in parts(chosen):
        for section, options in found:
            title = f"{ADVANCED}: {section.value}" if advanced else section.value
            group = parser.add_argument_group(title.lower(), NOTES.get(section))
            for option in options:
                _add_flags(group, option, option.name)


def add_group(parser: ArgumentParser, title: str, options: Iterable[Option]) -> None:
    """Add the flags of some options in one group; `given_flags` reads them from the result."""
    group = parser.add_argument_group(title)
    for option in options:
        _add_flags(group, option, title)


def _add_flags(group: _ArgumentGroup, option: Option, mark: str) -> None:
    """Add the flag of one option, and for a secret the flag of the file that holds it."""
    extra: dict[str, Any] = {"nargs": "?", "const": "true"} if option.kind is BOOLEAN else {}
    text = f"{option.help} [{'; '.join(_facts(option))}]".replace("%", "%%")
    action = group.add_argument(option.flag, dest=option.name, metavar=option.kind.metavar, help=text, **extra)
    setattr(action, ROW, mark)
    if option.secret:
        text = f"file that holds it [{option.reads[0]}{FILE_VARIABLE}]"
        action = group.add_argument(option.flag + FILE_FLAG, dest=option.name + FILE_NAME, metavar="FILE", help=text)
        setattr(action, ROW, mark + FILE_NAME)


def _facts(option: Option) -> Iterator[str]:
    """Yield what the help of a flag ends in: the variables, and the default where there is one."""
    yield ", ".join(variable_names(option))
    default = default_text(option)
    if option.required:
        yield "required"
    elif default != "unset":
        yield f"default: {with_unit(option, default)}"


def given_flags(arguments: Mapping[str, object], rows: Sequence[Option] = OPTIONS) -> dict[str, str]:
    """Return the flags that were given, by option name, of parsed arguments."""
    names = {name for option in rows for name in (option.name, option.name + FILE_NAME)}
    return {name: value for name, value in arguments.items() if name in names and isinstance(value, str)}


def reference() -> str:
    """Return the reference page of every option, as Markdown (specification: Configuration)."""
    return page(INTRODUCTION, OPTIONS)


def page(introduction: str, rows: Sequence[Option]) -> str:
    """Return a reference page of these options, as Markdown."""
    divided = any(option.scope is not Scope.PROCESS for option in rows)
    columns = (*COLUMNS, PER_ENVIRONMENT) if divided else COLUMNS
    return "\n".join([introduction, *_chapters(rows, columns)])


def _chapters(rows: Sequence[Option], columns: Sequence[str]) -> Iterator[str]:
    """Yield the lines of all sections of a reference page, those of advanced options last."""
    for advanced, found in parts(rows):
        if advanced:
            yield f"## {ADVANCED}\n\n{ADVANCED_NOTE}\n"
        for section, options in found:
            yield from _chapter("###" if advanced else "##", section, options, columns)


def _chapter(mark: str, section: Section, options: list[Option], columns: Sequence[str]) -> Iterator[str]:
    """Yield the lines of one section of the reference page. `mark` stands before its heading."""
    yield f"{mark} {section.value}\n"
    if section in NOTES:
        yield f"{NOTES[section]}\n"
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for option in options:
        yield f"| {' | '.join(_cells(option)[: len(columns)])} |"
    yield ""


def _cells(option: Option) -> tuple[str, ...]:
    """Return the cells of one option's row of the reference page, for all columns."""
    variables = ", ".join(f"`{name}`" for name in variable_names(option))
    flag = f"`{option.flag}`" if option.flag else ""
    has_text = option.default_text or option.required or default_text(option) == "unset"
    default = default_text(option) if has_text else f"`{default_text(option)}`"
    takes = "a secret: " * option.secret + option.kind.expects
    meaning = f"{option.help[:1].upper()}{option.help[1:]}" + "; may change while the proxy runs" * option.reloads
    cells = (f"`{option.name}`", variables or "in code only", flag, default, takes, meaning, SCOPES[option.scope])
    return tuple(_escaped(cell) for cell in cells)


def _escaped(cell: str) -> str:
    """Return text that stays in its cell of a table and is not taken for emphasis; code spans are left as they are."""
    parts = cell.replace("|", "\\|").split("`")
    return "`".join(part if index % 2 else part.replace("*", "\\*") for index, part in enumerate(parts))


EXAMPLE = BY_NAME["clientKeys"]

INTRODUCTION = f"""# Options of the proxy: environment variables, flags, configuration file

Every option of `flagsvc proxy`, one row each, with its environment variable. `make docs` writes this page,
`flagsvc config --docs` prints it.

A value is looked for in this order: the flag, the environment variable, the file of `--config`, the default. A value of
nothing but blanks is not given. `flagsvc config` shows what is in effect, and where each value came from.

- **Environment variables.** Every variable that starts with `{PREFIX}` also answers with `{ALIAS}` in its place, as the reference
  proxy names it; `{PREFIX}` wins. Where a row names two variables, the first wins. A variable with one of the two
  prefixes that no option reads is named in a warning at start.
- **Secrets.** Beside each variable of a secret stands one that ends in `_FILE` and names a file that holds it
  (`{EXAMPLE.reads[0]}_FILE`); so it is with flags (`{EXAMPLE.flag}{FILE_FLAG}`) and names in the file
  (`{EXAMPLE.name}{FILE_NAME}`). The value itself wins over the file.
- **Config file.** TOML, under the option's name; a dot in a name is a table. `{CONFIG_VARIABLES[0]}` names the file where
  `--config` does not. Relative paths go by the folder of the file. Its table `[server]` holds [the flag server's
  options](server-options.md), which the proxy does not read.
- **Environments.** A table `[environments.NAME]` holds the options of one of several environments, `{PREFIX}ENVIRONMENTS`
  names them, and `{PREFIX}NAME_API_TOKEN` is the variable of one ([serve several
  environments](../how-to/serve-several-environments.md)). The last column tells which options an environment may have:
  where its value *{SCOPES[Scope.INHERITED]}*, that of the process is the default; where it has *{SCOPES[Scope.OWN]}*, the process
  has none; *{SCOPES[Scope.PROCESS]}* holds for the whole process.
- **In code.** `flagsvc.ProxyOptions` takes the same names in snake_case: `{EXAMPLE.field}`, `cors_max_age`.
- **Lists** are cut at commas; blanks around an item do not count. In the file and in code a list is a list.
- **Booleans** are `true`/`false`, `1`/`0`, `t`/`f`, `yes`/`no` or `on`/`off`, any letter case; a flag alone is `true`.
- **Sizes** are bytes, or kB and MB of 1024 and 1024 x 1024 bytes.

A value that does not parse stops the start with exit code 2 and a list of every problem.

```toml
flagsvcUrl = "https://flags.example.com/api"
flagsvcApiTokenFile = "/run/secrets/flagsvc-api-token"
clientKeys = ["web-app", "ios-app"]

[cors]
origin = ["https://www.example.com", "https://*.example.org"]
```
"""
