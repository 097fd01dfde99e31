"""Loads and checks strategies and enrichers from paths and from objects made in code, with a digest of their code.

A file is read once, so that the bytes that run are the bytes in the digest. Each file becomes a module with a unique name. So two
applications in one process may load different files, or one file twice.
"""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TypeAlias

from flagsvc.core.errors import ExtensionError
from flagsvc.core.files import LARGEST_CODE, read_file
from flagsvc.engine.strategies import CustomStrategy
from flagsvc.proxy.extensions import check
from flagsvc.proxy.extensions.enricher import ContextEnricher

JAVASCRIPT = (".js", ".cjs", ".mjs", ".ts")


@dataclass(frozen=True)
class Strategies:
    """The custom strategies of one application by name, and a hex digest of their code."""

    by_name: Mapping[str, CustomStrategy]
    digest: str


@dataclass(frozen=True)
class Enrichers:
    """The context enrichers of one application in the order they run, and a hex digest of their code."""

    functions: tuple[ContextEnricher, ...]
    digest: str


@dataclass(frozen=True)
class _Kind:
    """The differences between the two kinds of file."""

    title: str
    exported: str
    guide: str
    wrong: Callable[[object], str | None]


_STRATEGIES = _Kind("custom strategies", "strategies", "docs/how-to/custom-strategies.md", check.strategy)
_ENRICHERS = _Kind("context enrichers", "enrichers", "docs/how-to/context-enrichers.md", check.enricher)

_Found: TypeAlias = tuple[str, object]
"""An exported object and its place for messages: `a.py: strategies[0]`."""


def load_strategies(sources: Iterable[str | Path | CustomStrategy]) -> Strategies:
    """Return the strategies of files (paths) and of code (instances), in any mixture.

    Raises ExtensionError with one line for each invalid source: a file that is missing, cannot be imported or exports the wrong
    objects. Two strategies with the same name are an error too. A strategy with the name of a built-in one replaces it, as in the
    reference.
    """
    digest = hashlib.sha256()
    by_name: dict[str, CustomStrategy] = {}
    places: dict[str, str] = {}
    for place, strategy in _collect(_STRATEGIES, sources, digest.update):
        name = strategy.name  # type: ignore[attr-defined]
        if name in places:
            raise ExtensionError(f"two custom strategies are named `{name}`: {places[name]} and {place}")
        places[name] = place
        by_name[name] = strategy  # type: ignore[assignment]
    return Strategies(by_name, digest.hexdigest())


def load_enrichers(sources: Iterable[str | Path | ContextEnricher]) -> Enrichers:
    """Return the enrichers of files (paths) and of code (functions), in any mixture, in the order given.

    Raises ExtensionError with one line for each invalid source: a file that is missing, cannot be imported or exports the wrong
    objects.
    """
    digest = hashlib.sha256()
    functions = [function for _, function in _collect(_ENRICHERS, sources, digest.update)]
    return Enrichers(tuple(functions), digest.hexdigest())  # type: ignore[arg-type]


def _collect(kind: _Kind, sources: Iterable[object], add: Callable[[bytes], None]) -> list[_Found]:
    """Return every object of `sources`, checked, with its place. `add` gets the bytes of the digest."""
    found: list[_Found] = []
    problems: list[str] = []
    for index, source in enumerate(sources):
        try:
            found += _checked(kind, _found(kind, index, source, add))
        except ExtensionError as error:
            problems.append(str(error))
    if problems:
        raise ExtensionError("\n".join(problems))
    return found


def _found(kind: _Kind, index: int, source: object, add: Callable[[bytes], None]) -> list[_Found]:
    """Return the objects of one source, not yet checked one by one."""
    if isinstance(source, str | Path):
        return _from_file(kind, Path(source), add)
    add(_code_of(source))
    return [(f"{kind.exported}[{index}] given in code", source)]


def _checked(kind: _Kind, found: list[_Found]) -> list[_Found]:
    """Return `found`. Raises ExtensionError for the first invalid item."""
    for place, item in found:
        problem = kind.wrong(item) or check.declaration(item)
        if problem is not None:
            raise ExtensionError(f"{kind.title}: {place} {problem}")
    return found


def _from_file(kind: _Kind, path: Path, add: Callable[[bytes], None]) -> list[_Found]:
    """Return the exported objects of the file at `path`, not yet checked one by one."""
    if path.suffix.lower() in JAVASCRIPT:
        raise ExtensionError(
            f"{kind.title} file `{path}` is JavaScript: port it to a Python file that exports the list "
            f"`{kind.exported}` (see {kind.guide})"
        )
    source = _read(kind, path)
    add(len(source).to_bytes(8, "big") + source)
    module = _run(kind, path, source)
    exported = getattr(module, kind.exported, None)
    if exported is None:
        raise ExtensionError(
            f"{kind.title} file `{path}` exports no list named `{kind.exported}`{_nearest(module, kind.exported)}"
        )
    if not isinstance(exported, list | tuple):
        raise ExtensionError(
            f"{kind.title} file `{path}`: `{kind.exported}` is {check.type_with_article(exported)}, not a list"
        )
    return [(f"`{path}`: {kind.exported}[{index}]", item) for index, item in enumerate(exported)]


def _nearest(module: ModuleType, wanted: str) -> str:
    """Return a hint with the name in `module` that is closest to `wanted`, or an empty text."""
    names = {name.lower(): name for name in vars(module) if not name.startswith("__")}
    near = get_close_matches(wanted, names, n=1)
    return f"; did you mean `{names[near[0]]}`? it must be called `{wanted}`" if near else ""


def _read(kind: _Kind, path: Path) -> bytes:
    """Return the bytes of the file at `path`."""
    try:
        return read_file(path, LARGEST_CODE)
    except FileNotFoundError:
        raise ExtensionError(f"{kind.title} file `{path}` does not exist") from None
    except OSError as error:
        raise ExtensionError(
            f"{kind.title} file `{path}` cannot be read: {(error.strerror or str(error)).lower()}"
        ) from None


def _run(kind: _Kind, path: Path, source: bytes) -> ModuleType:
    """Run `source` and return it as a module.

    The module stays in `sys.modules` under a unique name, because dataclasses and typing look up their module there.
    """
    name = f"flagsvc_{kind.exported}_{uuid.uuid4().hex}"
    spec = spec_from_file_location(name, path.resolve())
    if spec is None:
        raise ExtensionError(f"{kind.title} file `{path}` is not a Python file: its name must end in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the operator's file
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ExtensionError(f"{kind.title} file `{path}` does not import: {_reason(error, str(path))}") from None
    return module


def _reason(error: BaseException, path: str) -> str:
    """Return the type of `error`, the line of the file it came from, and its message."""
    if isinstance(error, SyntaxError) and error.filename == path:
        message, line = error.msg, error.lineno
    else:
        message, line = str(error), _line(error.__traceback__, path)
    at = f" on line {line}" if line else ""
    return f"{type(error).__name__}{at}{': ' if message else ''}{message}"


def _line(trace: TracebackType | None, path: str) -> int | None:
    """Return the innermost line of the file at `path` in a traceback, or None."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _code_of(item: object) -> bytes:
    """Return bytes that change when the code or the state of an in-code extension changes.

    If the source is not available (an interactive session), they are random. Then the tags of answers differ between
    processes, which is slower but never wrong.
    """
    code = item if hasattr(item, "__qualname__") else type(item)
    file = getattr(sys.modules.get(getattr(code, "__module__", "")), "__file__", None)
    try:
        source = Path(file or "").read_bytes()
        state = repr(object.__getstate__(item))  # what is in slots is not in its `vars`
    except Exception:
        return uuid.uuid4().bytes
    return b"\0".join([str(code.__qualname__).encode(), state.encode(), source])
