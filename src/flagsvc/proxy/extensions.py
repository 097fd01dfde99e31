"""Custom activation strategies and context enrichers: their interfaces, and how they are loaded from Python files.

This module checks extensions and explains what is wrong with an invalid one. It does not evaluate toggles or answer requests: the
engine calls strategies, and the api calls enrichers.

    strategies   FLAGSVC_CUSTOM_STRATEGIES_FILE, files that export a list named `strategies`
    enrichers    EXP_CUSTOM_ENRICHERS_FILE, files that export a list named `enrichers`
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Protocol, TypeAlias, TypeVar

from flagsvc.core.errors import ExtensionError
from flagsvc.core.files import LARGEST_CODE, read_file
from flagsvc.engine.context import Context
from flagsvc.engine.strategies import CustomStrategy as CustomStrategy
from flagsvc.engine.values import jsnumber


def strategy_problem(item: object) -> str | None:
    """Return why `item` is not a custom strategy, or None."""
    if isinstance(item, type):
        return f"is the class {item.__name__}, not an instance of it: write `{item.__name__}()`"
    name, is_enabled = getattr(item, "name", None), getattr(item, "is_enabled", None)
    if not isinstance(name, str) or not name:
        return f"is {type_with_article(item)} without a `name`: a strategy has a name and a method is_enabled(parameters, context)"
    if not callable(is_enabled):
        return f"(`{name}`) has no method is_enabled(parameters, context)"
    if inspect.iscoroutinefunction(is_enabled):
        return f"(`{name}`) has an async is_enabled: it must be a plain method, it runs inside the evaluation"
    return None if _takes(is_enabled, 2) else f"(`{name}`) has an is_enabled that does not take (parameters, context)"


def enricher_problem(item: object) -> str | None:
    """Return why `item` is not a context enricher, or None."""
    if isinstance(item, type):
        return f"is the class {item.__name__}, not a function or an instance of it"
    if not callable(item):
        return f"is {type_with_article(item)}: an enricher is a function, plain or async, from context to context"
    return None if _takes(item, 1) else f"(`{function_name(item)}`) does not take exactly one argument, the context"


def declaration_problem(item: object) -> str | None:
    """Return what is wrong with the attributes `pure` and `reads` of `item`, or None."""
    if not isinstance(getattr(item, "pure", False), bool):
        return "has a `pure` that is neither True nor False"
    reads = getattr(item, "reads", None)
    if reads is None or (isinstance(reads, set | frozenset) and all(isinstance(field, str) for field in reads)):
        return None
    return "has a `reads` that is not a set of context field names, for example {'userId', 'region'}"


def type_with_article(item: object) -> str:
    """Return the type of `item` with its article: `an int`."""
    kind = type(item).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def function_name(function: object) -> str:
    """Return the name of a function or callable object, for messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def _takes(function: Callable[..., object], arguments: int) -> bool:
    """Return whether `function` can be called with this many positional arguments, as far as its signature is known."""
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:  # a function written in C that does not tell its signature
        return True
    return True


ContextEnricher: TypeAlias = Callable[[Context], Context | Awaitable[Context]]
"""An enricher: a plain or async function that takes a context and returns the one to evaluate."""

_Enricher = TypeVar("_Enricher", bound=ContextEnricher)


def enricher(*, pure: bool = False, reads: Collection[str] | None = None) -> Callable[[_Enricher], _Enricher]:
    """Return a decorator that declares what an enricher depends on. An enricher works without it too.

    `pure` promises that an equal context always gives an equal result (no clock, no look-up elsewhere). `reads` names the context
    fields that the enricher reads, as on the wire (`userId`, `region`); None stands for any field.
    """

    def declare(function: _Enricher) -> _Enricher:
        function.pure = pure  # type: ignore[attr-defined]
        function.reads = reads if reads is None or isinstance(reads, str) else frozenset(reads)  # type: ignore[attr-defined]
        return function

    return declare


async def enrich(context: Context, enrichers: Sequence[ContextEnricher]) -> Context:
    """Return `context` after all enrichers. Each one gets the result of the one before.

    Raises ExtensionError if an enricher does not return a Context, and any exception that an enricher raises
    (behaviour: Statuses and bodies).
    """
    for each in enrichers:
        given = each(context)
        context = check_result(each, await given if isinstance(given, Awaitable) else given)
    return context


def check_result(each: ContextEnricher, result: object) -> Context:
    """Return the result of an enricher, with texts as properties (behaviour: Context by POST).

    Raises ExtensionError if it is not a Context, or if a value in it can be no text.
    """
    if not isinstance(result, Context):
        raise ExtensionError(f"enricher `{function_name(each)}` returned {type_with_article(result)}, not a Context")
    properties: Mapping[str, object] = result.properties  # a program that is not type-checked may give any value
    if all(isinstance(value, str) for value in properties.values()):
        return result
    return result.replace(properties={name: to_text(each, name, value) for name, value in properties.items()})


def to_text(each: ContextEnricher, name: str, value: object) -> str:
    """Return a property as text. Raises ExtensionError for a value that is no text, number, boolean or None."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return jsnumber.scalar_text(value)
    if value is None:
        return ""
    told = f"{type_with_article(value)}, not a text"
    raise ExtensionError(f"enricher `{function_name(each)}` returned a context whose property `{name}` is {told}")


class ContextView(Protocol):
    """The evaluation context as a custom strategy gets it. It must not be changed.

    A standard field that the caller did not send is None, never the empty text. `properties` contains all other fields by name.
    `current_time` is the caller's time in epoch milliseconds, or None. `now` is the time that the evaluation uses, in epoch
    milliseconds.
    """

    @property
    def app_name(self) -> str | None:
        """The name of the calling application."""

    @property
    def environment(self) -> str | None:
        """The environment of the evaluation."""

    @property
    def user_id(self) -> str | None:
        """The user of the evaluation."""

    @property
    def session_id(self) -> str | None:
        """The session of that user."""

    @property
    def remote_address(self) -> str | None:
        """The caller's address."""

    @property
    def current_time(self) -> float | None:
        """The caller's time, in epoch milliseconds, or None."""

    @property
    def now(self) -> float:
        """The time of the evaluation if the caller sent none, in epoch milliseconds."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Every other field, by name."""

    def get(self, field: str) -> str | None:
        """Return the standard field or property of that name, as on the wire (`userId`, `region`), or None."""


class Strategy(ABC):
    """An optional base class for custom strategies: set `name` and write `is_enabled`.

    `pure` promises that equal parameters and an equal context always give an equal result: the strategy uses no clock (`now`
    is one), no random numbers and no file. Then the proxy knows that an answer is unchanged without an evaluation. `reads`
    names the context fields that the strategy reads, as on the wire (`userId`, `region`); None, or `properties` among them,
    stands for any field. Both are optional and only save work.
    """

    name: str = ""
    pure: bool = False
    reads: frozenset[str] | None = None

    @abstractmethod
    def is_enabled(self, parameters: Mapping[str, str], context: ContextView) -> object:
        """Return whether the strategy is on for `context`; taken by truth.

        `parameters` are those of the toggle's strategy; names and values are texts, as in the upstream's document. An
        exception counts as false and is logged once for each name of a strategy (behaviour: Statuses and bodies).
        """


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


_STRATEGIES = _Kind("custom strategies", "strategies", "docs/how-to/custom-strategies.md", strategy_problem)
_ENRICHERS = _Kind("context enrichers", "enrichers", "docs/how-to/context-enrichers.md", enricher_problem)

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
        problem = kind.wrong(item) or declaration_problem(item)
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
        raise ExtensionError(f"{kind.title} file `{path}` exports no list named `{kind.exported}`{_nearest(module, kind.exported)}")
    if not isinstance(exported, list | tuple):
        raise ExtensionError(f"{kind.title} file `{path}`: `{kind.exported}` is {type_with_article(exported)}, not a list")
    return [(f"`{path}`: {kind.exported}[{index}]", item) for index, item in enumerate(exported)]


def _nearest(module: ModuleType, wanted: str) -> str:
    """Return a hint with the name in `module` that is closest to `wanted`, or an empty text."""
    names = {name.lower(): name for name in vars(module) if not name.startswith("__")}
    near = get_close_matches(wanted, names, n=1)
    return f"; did you mean `{names[near[0]]}`? it must be called `{wanted}`" if near else ""


def _read(kind: _Kind, path: Path) -> bytes:
    try:
        return read_file(path, LARGEST_CODE)
    except FileNotFoundError:
        raise ExtensionError(f"{kind.title} file `{path}` does not exist") from None
    except OSError as error:
        raise ExtensionError(f"{kind.title} file `{path}` cannot be read: {(error.strerror or str(error)).lower()}") from None


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
