"""The lines of the log, found in the source: message, level, fields and program. `make docs` writes docs/reference/log.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from flagsvc.core.log import LEVELS

SOURCE = Path(__file__).resolve().parents[1] / "src" / "flagsvc"
PASSED_ON = {"log_failure", "log_recovery", "emit"}
"""Functions that write what they are given: those of `OutageLog`, and the one for messages of libraries."""
PROGRAMS = {
    "proxy/": "proxy",
    "process/reload": "proxy",
    "process/worker": "proxy",
    "server/": "flag server",
    "frontend/": "flag server",
}
"""The begin of a path → the program that writes the lines of such modules. The lines of other modules are of both programs."""
MENTIONED = re.compile(r"\blog(ger)?\b|_log\b|OutageLog")
"""What a module has that writes lines."""
ANY = "…"
"""What varies in a message."""

BUG = "A fault of flagsvc. Report it with the line: it names the place in the source."
REPLACED = "The parent starts another worker; the other workers answer meanwhile."
MEANINGS = {
    "a context enricher goes on although it was cancelled": "The enricher catches its cancellation: mend it.",
    "a context enricher raised": "The caller gets 500, or an answer for the context as it was (`enricherFailure`).",
    "a context enricher took too long": "As if it had raised. Make it faster, or raise `enricherTimeout`.",
    "a custom strategy raised, it counts as false": "Mend the strategy; each strategy is named once.",
    "a toggle could not be evaluated, it counts as off": BUG,
    "a valid token is refused: this process does not serve its environment": "Add the environment, or send its callers elsewhere.",
    "a watcher of changes failed": BUG,
    "a worker cannot start": REPLACED,
    "a worker does not answer and is killed": REPLACED,
    "a worker does not get ready with a configuration and is replaced": REPLACED,
    "a worker gives up": REPLACED,
    "a worker has ended and is replaced": REPLACED,
    "an unexpected error": f"The caller got 500, or the connection was closed. {BUG}",
    "bootstrapping failed": "The proxy waits for the upstream instead.",
    "changes of other servers are not noticed": "This server polls the database for changes until it can listen again.",
    "flags are left out, what is stored of them cannot be read": "All other flags are served. Restore them, or save them again.",
    "left out": "The part of the document is malformed. All other flags are served. Mend it on the flag server.",
    "not ready": "`/ready` answers 503 while the database cannot be read.",
    "reading the traffic failed": "Only the pages of the proxy lack it.",
    "served with an odd value": "The value has another type than it should have. Mend it on the flag server.",
    "stopping failed": BUG,
    "stored usage metrics could not be read": "They stay where they are, and are tried again.",
    "the configuration cannot be read again, the old one stays": "Mend what `problems` names; changed files are read again.",
    "the configuration could not be fetched": "The last good configuration is served. `unauthorized`: replace the token.",
    "the configuration could not be stored": "A restart in an outage begins with an older one. Look at `storage`.",
    "the database is away": "Proxies and SDKs are answered from memory; changes are 503.",
    "the flag server cannot start": "The next request after a pause tries again.",
    "the known tokens could not be stored": "After a restart they are looked up again.",
    "the new TLS files are refused": "The old certificate stays in use. Mend the files before it ends.",
    "the new certificates towards the upstream are refused": "The old ones stay in use. Mend the files.",
    "the registration was not taken": "Only statistics of the flag server lack it; it is sent again.",
    "the stored configuration cannot be used": "The proxy waits for the upstream.",
    "the stored configuration could not be read": "A start while the upstream is away has nothing to serve. Look at `storage`.",
    "the stored tokens could not be read": "They are looked up again.",
    "the upstream is polled without a stream": "Changes arrive with the next poll. The proxy goes on trying.",
    "tokens could not be looked up": "Known tokens go on working; unknown tokens get 503.",
    "too many context enrichers go on although they were cancelled": "Requests fail until some end. Restart, and mend them.",
    "usage metrics could not be sent": "The proxy keeps them, and sends them later.",
    "usage metrics could not be stored": "A restart would lose what is not sent yet. Look at `storage`.",
    f"{ANY} failed and starts again": f"A task in the background. {BUG}",
    f"{ANY}: {ANY}": "The program does not start, for the reason in the line.",
}
"""Message → what it means and what to do, where the message does not say it; every error has one."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Found: TypeAlias = tuple[ast.expr, frozenset[str]]
"""The expression of a message, and the names of the fields beside it."""

INTRODUCTION = """# The lines of the log

Both programs write logs to standard error: every line of level `warn` or above. `LOG_LEVEL` sets another log level: `debug`,
`info`, `warn`, `error`, `fatal`. `JSON_LOGGER=true` writes JSON, with `time`, `level`, `message` and the fields below. No line
has a context, a key or a token. What a program prints when it listens, is ready and stops is on standard output at every level:
it is not below.

A trouble that lasts has a line when it begins and a line when it ends; between them, repetitions have level `debug`. A refused
token is an `error`, whatever could not be done with it. `…` stands for what varies. `make docs` writes this page from the
source.
"""


class Line(NamedTuple):
    """A line of the log; its levels are those that it can have."""

    levels: frozenset[str]
    message: str
    fields: frozenset[str]
    program: str


class Module:
    """A module of the source."""

    def __init__(self, path: Path) -> None:
        self.path = path.relative_to(SOURCE).as_posix()
        self.tree = ast.parse(path.read_text())
        self.nodes = list(ast.walk(self.tree))
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        functions = [node for node in self.nodes if isinstance(node, Function)]
        self.within = {inner: function for function in functions for inner in ast.walk(function)}
        self.writers = {node for node in self.nodes if isinstance(node, ast.Attribute) and is_writer(node)}
        self.written: set[ast.Attribute] = set()
        """The methods of loggers that the module names, and the methods that write its lines, also from another module."""

    def lines(self) -> Iterator[Line]:
        """Give the lines of the module. Raises SystemExit for a message that cannot be found out."""
        program = next((program for begin, program in PROGRAMS.items() if self.path.startswith(begin)), "both")
        for call in self.calls:
            for event, levels, fields in self.messages(call):
                yield from (Line(frozenset(levels), text, fields, program) for text in self.texts(event))

    def messages(self, call: ast.Call) -> Iterator[tuple[ast.expr, set[str], frozenset[str]]]:
        """Give the messages of a call, with levels and fields. An `OutageLog` has a message for the failure and one for its end."""
        if isinstance(call.func, ast.Name) and call.func.id == "OutageLog":
            quiet = {"info"} if call.keywords else set()
            yield call.args[1], {"warn", "error", "debug"} | quiet, frozenset({"error", "kind"})
            yield call.args[2], {"warn"} | quiet, frozenset()
        elif methods := set(self.methods(call.func)):
            self.written |= methods
            function = self.within.get(call)
            is_given = function is not None and function.name in PASSED_ON
            for event, fields in () if is_given else self.expand(call.args[0], self.fields(call), function):
                yield event, {each.attr for each in methods}, fields

    def methods(self, expression: ast.AST) -> Iterator[ast.Attribute]:
        """Give the methods of loggers that an expression can be."""
        if isinstance(expression, ast.Attribute) and is_writer(expression):
            yield expression
        elif isinstance(expression, ast.IfExp):
            yield from self.methods(expression.body)
            yield from self.methods(expression.orelse)
        elif isinstance(expression, ast.Name):
            for value in self.assigned(expression):
                yield from self.methods(value)
        elif isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name):
            for value in self.found(expression.func.id):
                yield from self.methods(value)

    def expand(self, event: ast.expr, fields: frozenset[str], function: Function | None) -> Iterator[Found]:
        """Give a message with its fields, once for each caller of the function if the caller gives the message."""
        names = [] if function is None else [each.arg for each in function.args.args if each.arg != "self"]
        if function is None or not isinstance(event, ast.Name) or event.id not in names:
            yield event, fields
            return
        for call in self.calls:
            if ast.unparse(call.func).rpartition(".")[2] == function.name and len(call.args) > names.index(event.id):
                more = self.fields(call) - set(names) if function.args.kwarg else frozenset()
                yield from self.expand(call.args[names.index(event.id)], fields | more, self.within.get(call))

    def fields(self, call: ast.Call) -> frozenset[str]:
        """Return the names of the fields that a call gives."""
        return frozenset(name for each in call.keywords for name in ([each.arg] if each.arg else self.keys(each.value)))

    def keys(self, expression: ast.expr) -> set[str]:
        """Return the keys that a dictionary can have."""
        if isinstance(expression, ast.Dict):
            return {str(each.value) if isinstance(each, ast.Constant) else ANY for each in expression.keys}
        if isinstance(expression, ast.IfExp):
            return self.keys(expression.body) | self.keys(expression.orelse)
        if isinstance(expression, ast.BinOp):
            return self.keys(expression.left) | self.keys(expression.right)
        if isinstance(expression, ast.Name):
            function = self.within.get(expression)
            if function and function.args.kwarg and function.args.kwarg.arg == expression.id:
                return set()  # the callers give them
            return {key for value in self.assigned(expression) for key in self.keys(value)}
        return {ANY}

    def texts(self, expression: ast.expr) -> set[str]:
        """Return the texts that an expression can be, with ANY for what varies."""
        if isinstance(expression, ast.Constant):
            return {str(expression.value)}
        if isinstance(expression, ast.JoinedStr):
            return {"".join(str(each.value) if isinstance(each, ast.Constant) else ANY for each in expression.values)}
        if isinstance(expression, ast.IfExp):
            return self.texts(expression.body) | self.texts(expression.orelse)
        if isinstance(expression, ast.Subscript):
            return self.texts(expression.value)
        if isinstance(expression, ast.Dict):
            return {text for each in expression.values for text in self.texts(each)}
        values = self.assigned(expression) or self.found(expression.id) if isinstance(expression, ast.Name) else []
        if not values:
            raise SystemExit(f"{self.path}: the message `{ast.unparse(expression)}` of the log cannot be found out")
        return {text for value in values for text in self.texts(value)}

    def assigned(self, name: ast.Name) -> list[ast.expr]:
        """Return what the function of a name has assigned to it in the lines before."""
        nodes = ast.walk(self.within[name]) if name in self.within else ()
        return [value for node in nodes for value in values_of(node, name.id) if value.lineno < name.lineno]

    def found(self, name: str) -> list[ast.expr]:
        """Return what a name is at the top of its module, which may be another module: a constant, or what a function returns."""
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module and any(each.name == name for each in node.names):
                path = SOURCE.parent / node.module.replace(".", "/")
                return open_module(path.with_suffix(".py")).found(name) if path.with_suffix(".py").exists() else []
            if isinstance(node, ast.FunctionDef) and node.name == name and isinstance(node.body[-1], ast.Return):
                return [each for each in [node.body[-1].value] if each]
            if values := list(values_of(node, name)):
                return values
        return []


open_module = cache(Module)


def is_writer(node: ast.Attribute) -> bool:
    """Return whether an attribute is a method of a logger."""
    return node.attr in LEVELS and ast.unparse(node.value).rpartition(".")[2].lstrip("_") in {"log", "logger"}


def values_of(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """Give the value that a statement assigns to a name, or to a key of it."""
    if isinstance(node, ast.AnnAssign) and node.value is not None and ast.unparse(node.target) == name:
        yield node.value
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if ast.unparse(target) == name:
                yield node.value
            elif isinstance(target, ast.Subscript) and ast.unparse(target.value) == name:
                yield ast.copy_location(ast.Dict([target.slice], [node.value]), node)


def find_lines() -> list[Line]:
    """Return every line that the source can write, without those that differ in the module only."""
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if MENTIONED.search(path.read_text())]
    modules = [open_module(path) for path in paths]
    found: dict[tuple[str, str], Line] = {}
    for line in [line for module in modules for line in module.lines()]:
        same = found.get((line.message, line.program), line)
        found[line.message, line.program] = Line(line.levels | same.levels, line.message, line.fields | same.fields, line.program)
    written = {each for module in modules for each in module.written}
    if left := [f"{module.path}:{each.lineno}" for module in modules for each in module.writers - written]:
        raise SystemExit(f"the messages of the log cannot be found out at {', '.join(left)}")
    return sorted(found.values(), key=lambda line: (line.message.lower(), line.program))


def page(lines: list[Line]) -> str:
    """Return the page of the log."""
    rows = ["| Message | Level | Fields | Program | Meaning |", "|---|---|---|---|---|"]
    for line in lines:
        levels = ", ".join(sorted(line.levels, key=LEVELS.__getitem__, reverse=True))
        fields = ", ".join(f"`{name}`" if name != ANY else name for name in sorted(line.fields))
        rows.append(f"| {line.message} | {levels} | {fields} | {line.program} | {MEANINGS.get(line.message, '')} |")
    return "\n".join([INTRODUCTION, *rows, ""])
