"""Odd command lines, variables and files for `flagsvc evaluate` and `flagsvc config`.

What is wrong ends in exit code 2 and one message with every problem, without a stack trace or a secret (behaviour: Odd values).
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from hypothesis import strategies as st

from flagsvc.cli import main
from flagsvc.core.errors import ExtensionError
from flagsvc.http.messages import Request, Response
from flagsvc.proxy.application import ProxyRuntime
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.settings.load import load
from flagsvc.settings.table import OPTIONS
from fuzzing import words
from fuzzing.answers import Got, Sent, check_head
from fuzzing.documents import dumped, patched
from fuzzing.proxy import DOCUMENT
from fuzzing.rows import Row
from support.processes import Called as Called

SECRET = "s3cr3t-marker"
ENOUGH = {"FLAGSVC_URL": "http://127.0.0.1:9/api", "FLAGSVC_API_TOKEN": SECRET, "FLAGSVC_PROXY_CLIENT_KEYS": SECRET + "-key"}
"""An environment that is enough for a start."""


class CommandFolder:
    """A folder with files that commands are pointed at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[str] = [
            "",
            ".",
            "/",
            "/dev/null",
            "no/such/file",
            "\0",
            "x" * 5000,
            DOCUMENT.as_uri(),
            str(DOCUMENT),
            "file:///",
            "file://[",
            "%zz",
        ]
        for name, content in CODE.items():
            (folder / name).write_bytes(content)
            self.files.append(str(folder / name))
        self.odd = folder / "odd"

    def filled(self, text: str) -> str:
        """Return a text, for `<7>` the seventh odd place."""
        number = text.removeprefix("<").removesuffix(">")
        return self.files[int(number) % len(self.files)] if text == f"<{number}>" and number.isdecimal() else text

    def call(self, arguments: Sequence[str], env: Mapping[str, str], *, given: bytes = b"", encoding: str = "utf-8") -> Called:
        """Call the command in this process, with standard streams as strict as a process has them."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors) for errors in ("strict", "backslashreplace"))
        standard_in = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
        with (
            patch.dict(os.environ, dict(env), clear=True),
            patch.object(sys, "stdin", standard_in),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = main(list(arguments))
        return Called(code, *(text(stream) for stream in (out, err)))


def text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode(stream.encoding)  # type: ignore[attr-defined, no-any-return]


STRATEGY = b"""class Odd:
    name = %b
    def is_enabled(self, parameters, context):
        %b
strategies = [Odd()]
"""
CODE: dict[str, bytes] = {
    "empty.py": b"",
    "syntax.py": b"strategies = [",
    "raises.py": b"raise ValueError('at import')",
    "exits.py": b"raise SystemExit(3)",
    "missing.py": b"import no_such_module_at_all",
    "wrong.py": b"strategies = 7\nenrichers = 'seven'",
    "wrong_items.py": b"strategies = [1, None, object(), int]\nenrichers = [1, None, int, lambda: None]",
    "odd_name.py": STRATEGY % (rb"'\ud800'", b"return 1/0"),
    "raising.py": STRATEGY % (b"'default'", b"raise KeyError('x' * 10)"),
    "enrichers.py": b"def wrong(context):\n    raise RuntimeError('no')\nenrichers = [wrong]",
    "nothing.py": b"def nothing(context):\n    return None\nenrichers = [nothing]",
    "not_utf8.py": b"strategies = ['\xff']",
    "nul.py": b"strategies = []\0",
    "code.js": b"module.exports = []",
    "deep.py": b"(" * 300 + b")" * 300,
}
"""Files of custom code: wrong files, and a right file that raises."""

arguments_text = st.text(max_size=20) | st.binary(max_size=20).map(os.fsdecode)
plain = arguments_text.filter(lambda value: "\0" not in value)
"""A text that can stand in an argument or a variable: no NUL, any other byte."""

pairs = st.builds(
    lambda name, equals, value: name + equals + value,
    st.sampled_from(
        (
            "userId",
            "currentTime",
            "properties",
            "properties.a",
            "properties.",
            "appName",
            "a",
            "a[b]",
            "[",
            "a.b",
            "",
            "properties[a]",
        )
    )
    | plain,
    st.sampled_from(("=", "=", "=", "", "==")),
    st.sampled_from(("", "7", "2026-11-20", "now", "%", "ключ", "²")) | plain,
)
contents = (
    patched().map(dumped)
    | words.damaged(patched().map(dumped))
    | words.texts()
    | st.binary(max_size=60)
    | st.sampled_from(words.UNUSUAL)
)
switches = st.lists(
    st.sampled_from(("--all", "--explain", "--whole", "--json", "--hash-encoding=utf8", "--hash-encoding=no")),
    max_size=4,
    unique=True,
)
places = st.integers(0, 99).map("<{}>".format)
"""Odd files and folders of the desk."""
encodings = st.sampled_from(("utf-8", "utf-8", "ascii", "latin-1"))
urls = st.sampled_from(
    ("http://", "http://[", "http://127.0.0.1:1/x", "http://127.0.0.1:99999", "HTTP://user:pass@127.0.0.1:1",
    "http://\u2603:1", "https://127.0.0.1:1",
     "http://127.0.0.1:1/\udcff", "ftp://x", "://", "http:///", "-", "--", "file:", "FILE:///dev/null", "http://a b/")
)  # fmt: skip


@st.composite
def evaluations(draw: st.DrawFn) -> tuple[list[str], bytes, str, str]:
    """Arguments after the document, the document, where it is (in a file, on standard input, somewhere odd), and an encoding."""
    arguments = [part for pair in draw(st.lists(pairs, max_size=4)) for part in ("--context", pair)]
    arguments += [
        part for name in draw(st.lists(st.sampled_from(words.NAMES[:4]) | plain, max_size=2)) for part in ("--toggle", name)
    ]
    arguments += draw(switches)
    if draw(st.integers(0, 4)) == 0:
        arguments += [draw(st.sampled_from(("--custom-strategies", "--exp-custom-enrichers"))), draw(places)]
    if draw(st.integers(0, 9)) == 0:
        arguments.append(draw(plain))
    where = draw(st.sampled_from(("odd", "odd", "odd", "odd", "-")) | urls | places)
    return arguments, draw(contents), where, draw(encodings)


def evaluate_row(folder: CommandFolder, given: tuple[list[str], bytes, str, str]) -> None:
    """The exit code is 0, 1 or 2, problems are in words, and the output of `--json` is JSON."""
    arguments, content, where, encoding = given
    folder.odd.write_bytes(content)
    place = str(folder.odd) if where == "odd" else folder.filled(where)
    called = folder.call(["evaluate", place, *map(folder.filled, arguments)], {}, given=content, encoding=encoding)
    check_call(called)
    if called.code == 0 and "--json" in arguments and "--help" not in arguments:
        assert isinstance(json.loads(called.out)["toggles"], list)


VARIABLES = sorted(variable.name for option in OPTIONS for variable in option.variables)
FLAGS = sorted(option.flag for option in OPTIONS if option.flag)
VALUES = (
    "", " ", ",", ", ,", "true", "TRUE", "yes", "2", "0", "-1", "1e3", "0x10", "²", "٣", "9" * 400, "9" * 5000, "1.5",
    "99999999999", "nan", "NaN", "*", "**",
    "http://", "http://[", "http://a b", "https://user:pw@host", "http://h:99999", "file:///dev/null", "file://",
    "ftp://x", "http://x/#y", "http://x?y=z",
    "//", "/a/../b", "a/b/", "?", "%zz", "a:b,c", ":", "a:", "10.0.0.0/8", "10.0.0.0/33", "::1/129", "loopback",
    "fe80::1%eth0", "²/8", "GET, POST", "GE T", "x y",
    "x\ny", "\u2028", "ключ", "\x7f", "\udcff", "https://*.example.org", "null", "204", "600", "99", "debug", "utf8",
    "none", "file:///no/such/folder", "redis://x",
    "/dev/null", "/", "no/such.js", "é", "X-Ключ",
)  # fmt: skip
settings_text = st.sampled_from(VALUES) | plain
variables = st.dictionaries(
    st.sampled_from(VARIABLES)
    | st.sampled_from(("FLAGSVC_NO_SUCH", "UNLEASH_", "FLAGSVC_", "HOME", "HOSTNAME", "USER", "FLAGSVC_CONFIG")),
    settings_text | places,
    max_size=5,
)
flags = st.lists(
    st.tuples(st.sampled_from(FLAGS), settings_text).map(lambda pair: "=".join(pair))
    | st.sampled_from(("--json", "--docs", "--", "--no-such", "-h", "--config", "--help"))
    | plain,
    max_size=3,
)
LINES = (
    'flagsvcUrl = "http://127.0.0.1:9"', "port = 1", 'port = "x"', "port = 1e400", "port = nan", "port = 2026-11-20",
    "[cors]", 'origin = "*"', "origin = []",
    "maxAge = -1", "[[cors]]", "[cors.origin]", "cors = 1", "clientKeys = [[]]", 'clientKeys = ["a", 1]',
    "unknown = 1", '"" = 1', "trustProxy = 1", "[expBootstrap]",
    "tags = { a = 1 }", "logger = 1", "refreshInterval = 0x7fffffffffffffffffff", 'a."b.c" = 1',
    "enableOAS = 1979-05-27T07:32:00Z", "clientKeysFile = 7"
)  # fmt: skip
tables = st.lists(st.sampled_from(LINES), max_size=5).map(lambda lines: "\n".join(lines).encode()) | st.binary(max_size=40)
configurations = st.tuples(variables, flags, st.none() | tables, encodings)


def config_row(folder: CommandFolder, given: tuple[dict[str, str], list[str], bytes | None, str]) -> None:
    """The exit code is 0 or 2 and no secret is shown; what is accepted makes an application that answers."""
    changed, arguments, table, encoding = given
    names = {name: folder.filled(value) for name, value in changed.items()}
    env = {name: value for name, value in {**ENOUGH, **names}.items() if "\0" not in value}
    if table is not None:
        folder.odd.write_bytes(table)
        env.setdefault("FLAGSVC_CONFIG", str(folder.odd))
    called = folder.call(["config", *arguments], env, encoding=encoding)
    check_call(called)
    assert SECRET not in called.out + called.err
    if called.code == 0 and not arguments:
        assert_serves(env)


def assert_serves(env: Mapping[str, str]) -> None:
    """Check that accepted options make a proxy that answers. It is not started and sends nothing."""
    with patch.dict(os.environ, dict(env), clear=True):
        options = load(os.environ, None, {}).options
    try:
        service = ProxyRuntime(make_setup(options)).service
    except ExtensionError:
        return
    origin = ((b"origin", b"https://a.example.org"), (b"access-control-request-headers", b"authorization"))
    for method, path in (("OPTIONS", b"/proxy"), ("GET", b"/proxy"), ("GET", b"/proxy/live"), ("PUT", b"/docs/openapi.json")):
        sent = Sent(method, options.proxy_base_path.encode() + path, headers=origin)
        response = service.admit(Request(method.encode(), sent.path, b"", list(origin), peer="127.0.0.1"))
        if not isinstance(response, Response):
            response = response.handler.answer(response, b"")  # type: ignore[assignment]
        check_head(sent, Got(response.status, response.headers(), response.body))  # type: ignore[union-attr]
        assert response.status != 500  # type: ignore[union-attr]


def check_call(called: Called) -> None:
    """Check what holds of any call: an exit code that means something, and words instead of a trace."""
    assert called.code in {0, 1, 2}, called
    assert "Traceback" not in called.out + called.err, called
    assert called.code == 0 or called.err.strip(), "an error without a word"


ROWS: tuple[Row[CommandFolder], ...] = (
    Row("flagsvc evaluate", evaluations(), evaluate_row, 250),
    Row("flagsvc config", configurations, config_row, 250),
)
