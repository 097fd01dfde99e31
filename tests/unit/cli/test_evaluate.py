"""`flagsvc evaluate`: its output for a document and a context, its error messages, and with `--explain --whole` the tree."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from flagsvc.cli import main
from flagsvc.cli.evaluate import MARKS, format_tree
from flagsvc.engine.context import Context
from flagsvc.reasons.whole import explain_whole
from flagsvc.settings.kinds import MOST_HINTS
from support.cli_helpers import Flagsvc
from support.evaluating import constraint, feature, region, rollout, strategy
from support.fake_upstream import FEATURES, Reply, fake_upstream
from support.processes import SERVER_SIDE_TOKEN, free_port, our_proxy
from support.whole import unfolded

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
BLUE = {"name": "blue", "weight": 1000, "payload": {"type": "json", "value": '{"a": 1}'}}
IN_EU = constraint("IN", values=["eu"])
DOCUMENT: dict[str, Any] = {
    "version": 2,
    "features": [
        feature("always", strategy()),
        feature("regional", strategy("default", IN_EU, variants=[BLUE])),
        feature("mine", strategy("mine", parameters={"word": "yes"})),
        feature("never", enabled=False),
    ],
}
STRATEGY = """
class Mine:
    name = "mine"
    def is_enabled(self, parameters, context):
        return context.properties["word"] == parameters["word"]
strategies = [Mine()]
"""
ENRICHER = "async def add(context):\n    return context.replace(properties={'region': 'eu'})\nenrichers = [add]\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file with the document."""
    file = tmp_path / "document.json"
    file.write_text(json.dumps(DOCUMENT))
    return str(file)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (
            ("--context", "userId=7", "--context", "properties.region=eu"),
            "2 of 4 toggles are on for userId=7, properties.region=eu\n\n"
            "always    on\n"
            'regional  on   variant blue (json) {"a": 1}\n',
        ),
        (("--all",), "1 of 4 toggles are on\n\nalways    on\nregional  off\nmine      off\nnever     off\n"),
        (("--toggle", "never", "--toggle", "always"), "never   off\nalways  on\n"),
    ],
)
def test_a_table(arguments: tuple[str, ...], printed: str, path: str, flagsvc: Flagsvc) -> None:
    """The toggles that are on have their variants, under a line with the context; --all lists those that are off, too.

    --toggle lists only the named toggles, on or off, in the given order.
    """
    assert flagsvc("evaluate", path, *arguments) == (0, printed, "")


def test_json(path: str, flagsvc: Flagsvc) -> None:
    """--json prints the same JSON as the proxy's answer."""
    run = flagsvc("evaluate", path, "--json", "--toggle", "always")
    off = {"name": "disabled", "enabled": False}
    toggle = {"name": "always", "enabled": True, "variant": off, "impressionData": False}
    assert json.loads(run.out) == {"toggles": [toggle]}


def test_explain(path: str, flagsvc: Flagsvc) -> None:
    """--explain gives the reason for each toggle, on or off."""
    run = flagsvc("evaluate", path, "--explain", "--context", "region=us")
    assert "constraint: region in [`eu`]; it is `us`" in run.out
    assert "never: off" in run.out and "always: on" in run.out
    [explained] = json.loads(flagsvc("evaluate", path, "--explain", "--json", "--toggle", "always").out)["toggles"]
    assert (explained["name"], explained["enabled"]) == ("always", True)


@pytest.mark.parametrize(
    ("pair", "is_on"),
    [("region=eu", True), ("properties.region=eu", True), ("properties[region]=eu", True), ("region=e%75", False)],
)
def test_ways_to_give_a_property(path: str, flagsvc: Flagsvc, pair: str, is_on: bool) -> None:
    """A property can be given by its name alone or inside `properties`; values are taken as they are."""
    assert ("regional" in flagsvc("evaluate", path, "--context", pair).out.partition("\n")[2]) is is_on


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--context", "userId"], "--context `userId`: expected NAME=VALUE"),
        (["--context", "=7"], "--context `=7`: expected NAME=VALUE"),
        (["--context", "userId=1", "--context", "userId=2"], "--context `userId` is given twice"),
        (["--context", "properties=1"], "--context `properties`: must be object"),
        (["--context", "currentTime=soon"], "--context `currentTime`: expected a date, such as 2026-12-24"),
        (["--toggle", "alwys"], "no toggle `alwys`, did you mean `always`?"),
        (["--toggle", "zzzzzz"], "no toggle `zzzzzz`"),
        (["--hash-encoding", "latin"], "hashEncoding (flag --hash-encoding): expected one of low-byte, utf8"),
        (["--custom-strategies", "none.py"], "custom strategies file `none.py` does not exist"),
        (["--exp-custom-enrichers", "none.py"], "context enrichers file `none.py` does not exist"),
        (["--tokn", "x"], "unknown option `--tokn`; did you mean `--token`?"),
    ],
)
def test_wrong_arguments(path: str, flagsvc: Flagsvc, arguments: list[str], problem: str) -> None:
    """The error is one line, the exit code is 2, and standard output is empty."""
    run = flagsvc("evaluate", path, *arguments)
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"flagsvc evaluate: {problem}")
    assert run.err.count("\n") == 1


def test_several_problems_at_once(path: str, flagsvc: Flagsvc) -> None:
    """All problems are reported together. The first unknown toggles have a hint: each look for the nearest takes milliseconds."""
    run = flagsvc("evaluate", path, *(f"--toggle=alwys{number}" for number in range(2000)))
    assert run.err.count("no toggle `alwys") == 2000 and run.err.count("did you mean `always`") == MOST_HINTS
    run = flagsvc("evaluate", path, "--context", "a", "--context", "b")
    assert run.err.splitlines()[0] == "flagsvc evaluate: 2 problems"


def test_custom_code(path: str, tmp_path: Path, flagsvc: Flagsvc) -> None:
    """Custom strategies and enrichers apply; a strategy that raises counts as off, and a line reports it."""
    (tmp_path / "s.py").write_text(STRATEGY)
    (tmp_path / "e.py").write_text(ENRICHER)
    run = flagsvc("evaluate", path, "--custom-strategies", str(tmp_path / "s.py"), "--context", "word=yes")
    assert "mine    on" in run.out
    run = flagsvc("evaluate", path, "--custom-strategies", str(tmp_path / "s.py"))
    assert run.code == 0 and "mine" not in run.out.partition("\n")[2]
    assert run.err == "flagsvc evaluate: custom strategy `mine` raised KeyError: 'word', which counts as off\n"
    assert "regional" in flagsvc("evaluate", path, "--exp-custom-enrichers", str(tmp_path / "e.py")).out


def test_a_toggle_that_cannot_be_evaluated(path: str, tmp_path: Path, flagsvc: Flagsvc) -> None:
    """The warning names the toggle, not a custom strategy: an enricher gave a region that cannot be looked up."""
    odd = "class Odd(str):\n    __hash__ = None\n    __eq__ = None\n"
    (tmp_path / "e.py").write_text(odd + ENRICHER.replace("'eu'", "Odd('eu')"))
    run = flagsvc("evaluate", path, "--exp-custom-enrichers", str(tmp_path / "e.py"))
    assert run.code == 0 and "regional" not in run.out
    assert run.err.startswith("flagsvc evaluate: the evaluation of toggle `regional` raised TypeError: ")
    assert run.err.endswith(", which counts as off\n")


def test_a_malformed_toggle(tmp_path: Path, flagsvc: Flagsvc) -> None:
    """A malformed toggle is reported and left out; the rest is evaluated."""
    document = {"features": [{"name": None}, *DOCUMENT["features"]]}
    (tmp_path / "d.json").write_text(json.dumps(document))
    run = flagsvc("evaluate", str(tmp_path / "d.json"))
    assert run.err == "flagsvc evaluate: left out: features[0].name: must be a text, is missing\n"
    assert run.out.startswith("1 of 4 toggles are on")


def test_a_warning_is_a_line(tmp_path: Path, flagsvc: Flagsvc) -> None:
    """A name in a document controls no terminal."""
    name = "\x1b[31m\nflagsvc" + "x" * 9999
    (tmp_path / "d.json").write_text(json.dumps({"features": [{"name": name, "enabled": 1}]}))
    run = flagsvc("evaluate", str(tmp_path / "d.json"))
    assert run.err.count("\n") == 1 and len(run.err) < 700
    assert "of toggle `\\x1b[31m\\nflagsvcxxx" in run.err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "is not JSON: expecting property name enclosed in double quotes at line 1, column 2"),
        (b"", "is not JSON: expecting value at line 1, column 1"),
        (b" <html>", "is a web page, not a document"),
        (b'"\xff"', "is not JSON: not UTF-8"),
        (b"[" * 100_000, "is not JSON: nested too deeply"),
        (b"[]", "is no client-features document"),
        (b'{"toggles": []}', "is no client-features document: features: must be a list, is missing"),
        (b'{"features": [], "featureStrategies": []}', "is a data set, as `flagsvc export` writes it"),
    ],
)
def test_wrong_documents(tmp_path: Path, flagsvc: Flagsvc, content: bytes, problem: str) -> None:
    """A file without a document is reported with the reason; the exit code is 2."""
    (tmp_path / "d.json").write_bytes(content)
    run = flagsvc("evaluate", str(tmp_path / "d.json"))
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"flagsvc evaluate: `{tmp_path / 'd.json'}` {problem}")


def test_other_places(flagsvc: Flagsvc, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """A dash is standard input, and a file: URL is read as a file."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(DOCUMENT).encode())))
    assert "always" in flagsvc("evaluate", "-").out
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"x")))
    assert "`standard input` is not JSON" in flagsvc("evaluate", "-").err
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"[]")))
    assert "`standard input` is no client-features document" in flagsvc("evaluate", "-").err
    assert "always" in flagsvc("evaluate", Path(path).as_uri()).out


def test_a_flag_server(flagsvc: Flagsvc) -> None:
    """A request has the token of the flag or the environment, in the named header. Without a token it has no such header."""
    with fake_upstream(DOCUMENT) as upstream:
        url = f"{upstream.url}/client/features"
        assert "always" in flagsvc("evaluate", url, "--token", "first").out
        second = {"UNLEASH_API_TOKEN": "second"}
        flagsvc("evaluate", url, env=second)
        flagsvc("evaluate", url, "--token", "third", "--client-keys-header-name", "X-Key", env=second)
        flagsvc("evaluate", url)
        seen = upstream.received(FEATURES)
    assert [each.headers.get("authorization") for each in seen] == ["first", "second", None, None]
    assert seen[2].headers["x-key"] == "third"


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(401), "answered with status 401: the token was refused"),
        (Reply(404), "answered with status 404: nothing is there"),
        (Reply(503), "answered with status 503: it is not ready"),
        (Reply(500), "answered with status 500: no document came"),
        (Reply(302, headers={"Location": "/other"}), "answered with status 302: it redirects to `/other`, ask there"),
    ],
)
def test_a_url_that_gives_no_document(flagsvc: Flagsvc, reply: Reply, problem: str) -> None:
    """A URL without a document is reported with its status and what to do; the exit code is 1, and the token is not shown."""
    with fake_upstream(DOCUMENT) as upstream:
        upstream.replies[FEATURES] = reply
        run = flagsvc("evaluate", f"{upstream.url}/client/features", "--token", "some-secret")
    assert (run.code, run.out) == (1, "")
    assert problem in run.err and "some-secret" not in run.err


@pytest.mark.parametrize("body", [b"[]", b"<html>", b'{"features": [], "featureStrategies": []}'])
def test_a_url_that_gives_something_else(flagsvc: Flagsvc, body: bytes) -> None:
    """The answer is reported without the password and the query of the URL; the exit code is 2."""
    with fake_upstream(DOCUMENT) as upstream:
        upstream.replies[FEATURES] = Reply(200, body=body)
        url = upstream.url.replace("://", "://user:some-password@")
        run = flagsvc("evaluate", f"{url}/client/features?signature=secret")
    assert run.code == 2 and "document" in run.err
    assert "some-password" not in run.err and "secret" not in run.err


def test_no_listener(flagsvc: Flagsvc) -> None:
    """A URL without a listener and an invalid URL are exit code 1. Errors do not show the password and the query."""
    run = flagsvc("evaluate", f"http://user:some/secret@127.0.0.1:{free_port()}/x?signature=secret")
    assert run.code == 1 and "secret" not in run.err
    run = flagsvc("evaluate", f"http://user:some-password@127.0.0.1:{free_port()}/x?signature=secret")
    assert run.code == 1 and run.err.endswith("connection refused\n")
    assert "some-password" not in run.err and "secret" not in run.err
    assert flagsvc("evaluate", "http://[::1").code == 1


def test_a_running_proxy(flagsvc: Flagsvc) -> None:
    """The document of a proxy gives the same result as the proxy itself."""
    with fake_upstream(DOCUMENT) as upstream, our_proxy(upstream.url) as proxy:
        url, token = f"{proxy.url}/client/features", ("--token", SERVER_SIDE_TOKEN)
        here = flagsvc("evaluate", url, *token, "--json", "--context", "region=eu", "--variant-feature-state", "true")
        there = proxy.get("?region=eu").json()
        refused = flagsvc("evaluate", f"{proxy.url}/client/features", "--token", "wrong")
    assert json.loads(here.out) == there
    assert refused.code == 1 and "the token was refused" in refused.err


def test_the_example_document(flagsvc: Flagsvc) -> None:
    """The example document and the example code work without errors, and the expected toggles are on."""
    run = flagsvc(
        "evaluate",
        str(EXAMPLES / "document.json"),
        *("--custom-strategies", str(EXAMPLES / "custom_strategies.py")),
        *("--exp-custom-enrichers", str(EXAMPLES / "enrichers.py")),
        *("--context", "userId=7", "--context", "region=eu", "--context", "currentTime=2026-12-24T10:00:00Z"),
    )
    assert (run.code, run.err) == (0, "")
    on = [line.split()[0] for line in run.out.splitlines()[2:]]
    assert on == [
        *("dark-mode", "new-checkout", "banner-text", "search-backend", "eu-invoice", "beta-programme"),
        *("winter-sale", "opening-hours-chat", "gold-support"),
    ]


# ---- the tree


VARIANTS = [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]


FAULTY = SimpleNamespace(name="faulty", is_enabled=Mock(side_effect=ValueError("no such shop")))
"""A custom strategy that raises."""


def lines(flag: dict[str, Any], context: Context, **options: Any) -> list[str]:
    """Return the lines of the last of some toggles, without the indentation."""
    made = unfolded(flag, feature("p"), **options)
    [found] = explain_whole(made, context, [flag["name"]])
    return [line.strip() for line in format_tree(found, MARKS).splitlines()]


@pytest.mark.parametrize(
    ("flag", "context", "line"),
    [
        (feature("f"), Context(), "f: on, variant disabled — it has no strategy, so it is on for everyone"),
        (feature("f", dependencies=[{"feature": "p"}]), Context(),
         "✓ toggle p is on: it is on, variant disabled — it has no strategy, so it is on for everyone"),
        (feature("f", dependencies=[{"feature": "x"}]), Context(), "✗ toggle x is on: toggle x is missing"),
        (feature("f", strategy(title="all", disabled=True)), Context(), '✓ strategy 1 "all", default (disabled)'),
        (feature("f", strategy("")), Context(), "✗ strategy 1, without a name"),
        (feature("f", strategy("default", constraint("IN", values=["eu"]))), region("us"), "✗ region is eu: it is us"),
        (feature("f", strategy("default", constraint("IN", values=["eu"]))), region(None), "✗ region is eu: it is absent"),
        (feature("f", strategy("default", constraint("IN", values=["eu"]))), region(None), "✓ everyone (not reached)"),
        (feature("f", strategy("default", None)), Context(), "✗ never: a constraint that is no object"),
        (feature("f", strategy(segments=[1])), Context(), "✓ in segment beta"),
        (feature("f", strategy(segments=[2])), Context(), "✗ in segment 2, which is missing"),
        (feature("f", rollout("10", groupId="g", stickiness="userId")), Context(user_id="7"),
         "✗ 10 % by userId, group g: bucket 81 of 100 by userId, on from 81 %"),
        (feature("f", rollout("10", groupId="g", stickiness="userId")), Context(user_id="7"),
         "→ with a rollout of at least 81 % in strategy 1 it would be on"),
        (feature("f", rollout("10", stickiness="userId")), Context(), "✗ 10 % by userId: userId is absent"),
        (feature("f", rollout("0", stickiness="random")), Context(), "✗ nobody (0 %)"),
        (feature("f", rollout("100")), Context(), "✓ everyone"),
        (feature("f", strategy("faulty")), Context(), "✗ custom strategy faulty: it raised ValueError: no such shop"),
        (feature("f", strategy(), variants=[VARIANTS[0]]), Context(user_id="7"),
         "✓ variant a of the feature: bucket 1 of 1 by userId; a 1–1"),
        (feature("f", variants=[VARIANTS[0] | {"overrides": [{"contextName": "userId", "values": ["7"]}]}]),
         Context(user_id="7"), "✓ variant a of the feature: by an override for userId"),
        (feature("f", strategy("default", constraint("DATE_AFTER", value="2026-01-01"))), Context(),
         "the answer depends on the time"),
    ],
)  # fmt: skip
def test_the_line_of_a_step(flag: dict[str, Any], context: Context, line: str) -> None:
    """Each kind of step has its words and what the context gave."""
    segments = [{"id": 1, "name": "beta", "constraints": []}]
    assert line in lines(flag, context, segments=segments, custom_strategies={"faulty": FAULTY})


@pytest.mark.parametrize("seed", range(6))
def test_the_lines_of_draws(seed: int) -> None:
    """A draw says so, and that the answer depends on chance."""
    told = "\n".join(lines(feature("f", rollout("50"), variants=VARIANTS), Context(entropy=seed)))
    assert " of 100 was drawn" in told and " of 2 was drawn; a 1–1, b 2–2" in told
    assert told.endswith("the answer depends on chance")


@pytest.fixture
def regional(tmp_path: Path) -> str:
    """A file with a document."""
    file = tmp_path / "document.json"
    file.write_text(json.dumps({"features": [feature("f", strategy("default", constraint("IN", values=["eu"]))), feature("g")]}))
    return str(file)


@pytest.mark.parametrize("flags", [["--explain", "--whole"], ["--whole"]])
def test_the_command_prints_the_tree(regional: str, flags: list[str], flagsvc: Flagsvc) -> None:
    """Each toggle has its tree, which shows which step is part of which; --toggle chooses."""
    called = flagsvc("evaluate", regional, *flags, "--context", "region=us")
    assert called.code == 0 and called.out.startswith(
        "f: off, variant disabled — no strategy is on\n"
        "  ✓ the feature is enabled\n"
        "  ✗ strategy 1, default\n"
        "      ✗ region is eu: it is us\n"
        "      ✓ everyone (not reached)\n"
        "  → with region eu it would be on\n\ng: on"
    )
    called = flagsvc("evaluate", regional, *flags, "--toggle", "g")
    assert called.code == 0 and "region" not in called.out


def test_the_command_prints_json(regional: str, flagsvc: Flagsvc) -> None:
    """--json gives the structure of every step."""
    asked = ("--explain", "--whole", "--json", "--context", "region=us", "--toggle", "f")
    [told] = json.loads(flagsvc("evaluate", regional, *asked).out)["toggles"]
    assert told["steps"][1]["steps"][0]["found"] == "us"
    assert told["changes"][0]["value"] == "eu"


def test_an_encoding_without_the_marks(regional: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the output is not UTF-8, the marks are words."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["evaluate", regional, "--whole", "--toggle", "g"]) == 0
    assert isinstance(output.buffer, io.BytesIO)
    assert b"  yes the feature is enabled" in output.buffer.getvalue()
