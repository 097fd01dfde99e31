"""Evaluate a client-features document for a context, without a server, and explain the result of each toggle.

DOCUMENT is a file, - for standard input, or the URL of a client-features endpoint: a flag server's /api/client/features
or a running proxy's /proxy/client/features, with a token it accepts. A context field is one of those of the proxy's query
string; any other name is a property.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import quote

from flagsvc.cli.documents import ENDPOINTS, describe_source, read_document
from flagsvc.cli.parser import ParagraphFormatter
from flagsvc.core.errors import ConfigurationError, DocumentError, ExtensionError, FlagsvcError
from flagsvc.core.state_export import about_state_export
from flagsvc.engine.compile import CompileOptions
from flagsvc.engine.context import FIELDS, Context
from flagsvc.engine.explain import Explanation, explain
from flagsvc.engine.run import STRATEGY, TOGGLE
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.query import read_query
from flagsvc.proxy.extensions import enrich, load_enrichers, load_strategies
from flagsvc.reasons.steps import Step, WholeExplanation, tell
from flagsvc.reasons.unfolded import Unfolded
from flagsvc.reasons.whole import explain_whole
from flagsvc.reasons.words import plain
from flagsvc.settings.defaults import host_name
from flagsvc.settings.kinds import MOST_HINTS, printable
from flagsvc.settings.load import resolve
from flagsvc.settings.table import BY_NAME

LONGEST_WARNING = 600
OWN_FLAGS = {
    "flagsvcApiToken": ("--token", "token that the URL accepts, else what FLAGSVC_API_TOKEN holds"),
    "clientKeysHeaderName": ("--client-keys-header-name", "name of the header in which the token is sent"),
}
"""Option → its flag and help, where they differ from the proxy's."""
OPTIONS = (
    *("flagsvcApiToken", "clientKeysHeaderName", "customStrategies", "expCustomEnrichers"),
    *("hashEncoding", "variantFeatureState"),
)
"""The options of the proxy that affect an evaluation; their flags and environment variables apply."""

FAULTS = {STRATEGY: "custom strategy", TOGGLE: "the evaluation of toggle"}
"""Kind of a fault → what raised, in words."""
REPEATED = (
    ("--context", "NAME=VALUE", "a context field or property"),
    ("--toggle", "NAME", "only this toggle, on or off"),
)
EPILOG = """\
examples
  flagsvc evaluate document.json --context userId=7 --context properties.region=eu
  flagsvc evaluate document.json --context userId=7 --toggle new-checkout --explain
  flagsvc evaluate document.json --context userId=7 --toggle new-checkout --explain --whole
  flagsvc evaluate http://localhost:3000/proxy/client/features --token TOKEN --all

connection to a URL
  HTTP_PROXY, HTTPS_PROXY and NO_PROXY apply. SSL_CERT_FILE and FLAGSVC_UPSTREAM_CA name additional authorities to trust,
  FLAGSVC_UPSTREAM_CERT and FLAGSVC_UPSTREAM_KEY a client certificate. Redirects are not followed.

exit code: 0; 1 when a URL gives no document; 2 when something given is wrong
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, ParagraphFormatter
    parser.add_argument("document", metavar="DOCUMENT", help="file, - or URL")
    for flag, metavar, text in REPEATED:
        parser.add_argument(flag, metavar=metavar, help=f"{text}; repeatable", action="append", default=[])
    parser.add_argument("--all", action="store_true", help="also the toggles that are off")
    parser.add_argument("--explain", action="store_true", help="explain the result of each toggle")
    parser.add_argument("--whole", action="store_true", help="explain every step, also after the one that decided")
    parser.add_argument("--json", action="store_true", help="print JSON")
    for name in OPTIONS:
        option = BY_NAME[name]
        flag, text = OWN_FLAGS.get(name, (option.flag, option.help))
        parser.add_argument(flag, dest=name, metavar=option.kind.metavar, help=text.replace("%", "%%"))


def run(args: argparse.Namespace) -> int:
    """Read the document, evaluate it for the context, print the result, and return 0.

    Raises ConfigurationError and ExtensionError for invalid input, UpstreamError when a URL gives no document.
    """
    settings = read_settings(args)
    context = run_enrichers(read_context(args.context), settings["expCustomEnrichers"])
    token, header = settings["flagsvcApiToken"], settings["clientKeysHeaderName"]
    unfolded = open_document(read_document(args.document, token=token, header=header), args, settings)
    snapshot = unfolded.compiled.snapshot
    names = check_toggles(args.toggle, snapshot)
    if args.whole:
        print(format_explanations(explain_whole(unfolded, context, names), as_json=args.json))
    elif args.explain:
        print(format_explanations(explain(snapshot, context, names), as_json=args.json))
    else:
        print(format_toggles(snapshot, context, names, args))
    for fault in snapshot.take_faults():
        raised = f"{type(fault.error).__name__}: {fault.error}"
        warn(f"{FAULTS[fault.kind]} `{fault.name}` raised {raised}, which counts as off")
    return 0


def run_enrichers(context: Context, files: Sequence[str]) -> Context:
    """Return the context after the enrichers in these files; raises ExtensionError, also for an exception in an enricher."""
    try:
        return asyncio.run(enrich(context, load_enrichers(files).functions))
    except FlagsvcError:
        raise
    except Exception as error:  # a custom enricher can raise any exception
        raise ExtensionError(f"a context enricher raised {type(error).__name__}: {error}") from None


def warn(text: str) -> None:
    """Print a warning to standard error, in a line that a document cannot break."""
    print(f"flagsvc evaluate: {printable(text, LONGEST_WARNING)}", file=sys.stderr)


def read_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the proxy that affect an evaluation, from flags and environment."""
    flags = {name: value for name in OPTIONS if (value := getattr(args, name)) is not None}
    resolved = resolve(os.environ, None, flags)
    is_set = [name for name in OPTIONS if resolved.sources[name] != "default"]  # here none is required
    wrong = [resolved.problems[name] for name in is_set if name in resolved.problems]
    if wrong:
        raise ConfigurationError(wrong)
    return {name: resolved.values[name] for name in OPTIONS}


def open_document(document: object, args: argparse.Namespace, settings: dict[str, Any]) -> Unfolded:
    """Return the document with its snapshot, and print its malformed parts to standard error."""
    if isinstance(document, dict) and "featureStrategies" in document:  # otherwise all its flags would be off
        a_set = f"is a data set, as `flagsvc export` writes it, not a client-features document; {ENDPOINTS} give one"
        raise ConfigurationError([f"`{describe_source(args.document)}` {about_state_export(document) or a_set}"])
    strategies = load_strategies(settings["customStrategies"])
    options = CompileOptions(
        hash_encoding=settings["hashEncoding"],
        variant_feature_state=settings["variantFeatureState"],
        hostname=host_name(os.environ),
        custom_strategies=strategies.by_name,
        code_digest=strategies.digest,
        fold=not args.explain,
    )
    try:
        unfolded = Unfolded(document, options)
    except DocumentError as error:
        raise ConfigurationError([f"`{describe_source(args.document)}` is no client-features document: {error}"]) from None
    for problem in unfolded.compiled.problems:
        warn(f"{'served with an odd value' if problem.served else 'left out'}: {problem}")
    return unfolded


def read_context(pairs: Sequence[str]) -> Context:
    """Return the context of `name=value` pairs, which are read like the proxy's query string."""
    problems = [f"--context `{pair}`: expected NAME=VALUE" for pair in pairs if not pair.partition("=")[1] or pair[0] == "="]
    names = [pair.partition("=")[0] for pair in pairs]
    problems += [f"--context `{name}` is given twice" for name in sorted(FIELDS) if names.count(name) > 1]
    if problems:
        raise ConfigurationError(problems)
    try:
        context = read_query("&".join(to_parameter(pair) for pair in pairs).encode())
    except HttpError as error:
        wrong = ((place.removeprefix("/query/"), rule) for place, rule in error.problems)
        raise ConfigurationError([f"--context `{place}`: {rule}" for place, rule in wrong]) from None
    if context.current_time is None and any(pair.startswith("currentTime=") and pair[12:] for pair in pairs):
        raise ConfigurationError(["--context `currentTime`: expected a date, such as 2026-12-24 or 2026-12-24T18:00:00Z"])
    context.environment = context.environment or "default"
    context.app_name = context.app_name or BY_NAME["flagsvcAppName"].default  # type: ignore[assignment]
    context.now, context.entropy = time.time() * 1000, secrets.randbits(62)
    return context


def to_parameter(pair: str) -> str:
    """Return `name=value` as a query parameter; `properties.region` is the property of that name."""
    name, _, value = pair.partition("=")
    inside = name.removeprefix("properties.")
    shown = percent_encode(name, "[]") if inside == name else f"properties[{percent_encode(inside)}]"
    return f"{shown}={percent_encode(value)}"


def percent_encode(text: str, safe: str = "") -> str:
    """Return a text with percent escapes; bytes of the command line that are not UTF-8 are kept."""
    return quote(text, safe=safe, errors="surrogateescape")


def check_toggles(names: Sequence[str], snapshot: Snapshot) -> list[str] | None:
    """Return the requested toggles, None for all; raises ConfigurationError for an unknown one."""
    problems: list[str] = []
    for name in names:
        if name not in snapshot.names:
            near = get_close_matches(name, snapshot.names if len(problems) < MOST_HINTS else (), n=1)
            problems.append(f"no toggle `{name}`" + (f", did you mean `{near[0]}`?" if near else ""))
    if problems:
        raise ConfigurationError(problems)
    return list(names) or None


def format_explanations(found: Sequence[Explanation | WholeExplanation], *, as_json: bool) -> str:
    """Return the explanation of each toggle's result, as JSON or as text: a whole one as a tree."""
    if as_json:
        return format_json({"toggles": [each.to_json() for each in found]})
    marks = MARKS if is_utf8() else PLAIN_MARKS
    texts = (format_tree(each, marks) if isinstance(each, WholeExplanation) else each.to_text() for each in found)
    return "\n\n".join(texts)


def format_toggles(snapshot: Snapshot, context: Context, names: list[str] | None, args: argparse.Namespace) -> str:
    """Return the toggles as a table, or as the JSON answer of the proxy."""
    if names is not None:
        body, _ = snapshot.named(context, names)
    else:
        body = snapshot.all(context) if args.all else snapshot.enabled(context)
    toggles = json.loads(body)["toggles"]
    if args.json:
        return format_json({"toggles": toggles})
    return (
        format_table(toggles)
        if names is not None
        else f"{format_summary(toggles, snapshot, args.context)}\n\n{format_table(toggles)}".strip()
    )


def format_summary(toggles: Sequence[dict[str, Any]], snapshot: Snapshot, pairs: Sequence[str]) -> str:
    """Return how many toggles are on, and the context."""
    on = sum(1 for toggle in toggles if toggle["enabled"])
    return f"{on} of {len(snapshot.names)} toggles are on" + (f" for {', '.join(pairs)}" if pairs else "")


def format_table(toggles: Sequence[dict[str, Any]]) -> str:
    """Return one line for each toggle: name, on or off, variant, payload."""
    width = max((len(toggle["name"]) for toggle in toggles), default=0)
    lines = (
        f"{toggle['name']:<{width}}  {'on ' if toggle['enabled'] else 'off'}  {format_variant(toggle['variant'])}"
        for toggle in toggles
    )
    return "\n".join(line.rstrip() for line in lines)


def format_variant(variant: dict[str, Any]) -> str:
    """Return a variant and its payload as text; empty without a variant."""
    if not variant["enabled"]:
        return ""
    payload = variant.get("payload", {})
    kind = f" ({payload['type']})" if "type" in payload else ""
    return f"variant {variant['name']}{kind} {payload.get('value', '')}".rstrip()


def format_json(value: object) -> str:
    """Return `value` as indented JSON; with escapes unless standard output is UTF-8."""
    return json.dumps(value, indent=2, ensure_ascii=not is_utf8())


def is_utf8() -> bool:
    """Return whether standard output is UTF-8."""
    return (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"


MARKS: Final = {True: "✓", False: "✗"}
PLAIN_MARKS: Final = {True: "yes", False: "no "}
"""The marks where the output's encoding does not have the others."""
NOT_REACHED: Final = " (not reached)"


def format_tree(whole: WholeExplanation, marks: dict[bool, str]) -> str:
    lines = [f"{plain(whole.name)}: {whole.outcome()}"]
    lines += [line for step in whole.steps for line in step_lines(step, "  ", True, marks)]
    lines += [f"  → {words}" for words in whole.turning_words()]
    inputs = [name for name, took_part in (("the time", whole.by_time), ("chance", whole.by_chance)) if took_part]
    return "\n".join([*lines, *([f"  the answer depends on {' and '.join(inputs)}"] if inputs else [])])


def step_lines(step: Step, indent: str, reached: bool, marks: dict[bool, str]) -> Iterator[str]:
    """Give the lines of a step and of its inner steps. An unreached step inside a reached step says so."""
    yield f"{indent}{marks[step.answer]} {tell(step)}{NOT_REACHED if reached and not step.reached else ''}"
    for inner in step.inner():
        yield from step_lines(inner, indent + "    ", step.reached, marks)
