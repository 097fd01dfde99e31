"""Every file that a command reads may be odd: without an end, a folder, missing, not UTF-8, nested deeply, or multiplied."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from fuzzing.commands import ENOUGH, CommandFolder

ROOM = 8 * 1024**3
"""The bytes of address space that a call may use: without a bound, a file without an end would take all memory."""


class Place(NamedTuple):
    """A place of a command where a file is named: arguments and variables with FILE, and the text of a file that names it."""

    arguments: str
    variables: Mapping[str, str] = MappingProxyType({})
    around: str = ""


SERVER = "--url http://127.0.0.1:9 --token x"
COMPOSE = "services: {p: {image: unleash-proxy, env_file: FILE}}"
PLACES = {
    "evaluate": Place("evaluate FILE"),
    "evaluate file:": Place("evaluate file://FILE"),
    "strategies": Place("evaluate GOOD --custom-strategies FILE"),
    "enrichers": Place("evaluate GOOD --exp-custom-enrichers FILE"),
    "validate": Place(f"validate FILE {SERVER}"),
    "validate --project": Place(f"validate FILE --project a --environment b {SERVER}"),
    "import": Place(f"import FILE {SERVER}"),
    "token": Place("validate GOOD --project a --environment b --url http://127.0.0.1:9 --token-file FILE"),
    "env file": Place("migrate --env-file FILE"),
    "compose": Place("migrate --compose FILE"),
    "env file of compose": Place("migrate --compose AROUND", around=COMPOSE),
    "config": Place("config --config FILE", ENOUGH),
    "config of the server": Place("server seed apply GOOD --config FILE"),
    "proxy": Place("proxy", {**ENOUGH, "FLAGSVC_CONFIG": "FILE"}),
    "secret": Place("config", {**ENOUGH, "FLAGSVC_API_TOKEN": "", "FLAGSVC_API_TOKEN_FILE": "FILE"}),
    "certificate": Place("config", {**ENOUGH, "FLAGSVC_TLS_CERT": "FILE"}),
    "authorities": Place("config", {**ENOUGH, "FLAGSVC_UPSTREAM_CA": "FILE"}),
    "seed": Place("server seed apply FILE"),
    "restore": Place("server restore FILE"),
}
TAKES_ANY_TEXT = {"env file", "env file of compose", "token", "secret"}
"""Places whose text has neither nesting nor aliases."""
DEEP = b"a: " + b"[" * 100_000
LINES = [b"a0: &a0 {k: 1}", *(b"a%d: &a%d {<<: [%s]}" % (n, n, b"*a%d, " % (n - 1) * 10) for n in range(1, 9))]
FILES = {
    "endless": None,
    "folder": None,
    "missing": None,
    "no UTF-8": b"a = '\xff'",
    "deep": DEEP,
    "deep JSON": b'{"features": ' + b"[" * 100_000,
    "deep TOML": b"a = " + b"[" * 100_000,
    "dotted TOML": b"a." * 50_000 + b"a = 1",
    "multiplied": b"\n".join([*LINES, b"features: *a8"]),
}


@pytest.fixture(scope="module")
def room() -> Iterator[None]:
    """Bound the memory of this process, so that a call that reads without a bound fails."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def path_of(name: str, folder: Path) -> str:
    """Return the path of an odd file."""
    content = FILES[name]
    if content is not None:
        (folder / "odd.py").write_bytes(content)
        return str(folder / "odd.py")
    return {"endless": "/dev/zero", "folder": str(folder)}.get(name, str(folder / "none"))


CASES = [
    (at, name)
    for at in PLACES
    for name in FILES
    if at not in TAKES_ANY_TEXT or not name.startswith(("deep", "dotted", "multiplied"))
]


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(("at", "name"), CASES)
def test_an_odd_file(at: str, name: str, tmp_path: Path) -> None:
    """The exit code is 2, and a single line says what is wrong with which file; nothing hangs, and no memory is exhausted."""
    place, path = PLACES[at], path_of(name, tmp_path)
    (tmp_path / "good.json").write_text('{"version": 2, "features": []}' if "evaluate" in place.arguments else '{"features": []}')
    (tmp_path / "around.yaml").write_text(place.around.replace("FILE", path))
    names = {"FILE": path, "GOOD": str(tmp_path / "good.json"), "AROUND": str(tmp_path / "around.yaml")}

    def filled(text: str) -> str:
        for word, other in names.items():
            text = text.replace(word, other)
        return text

    env = {"HOME": str(tmp_path), "FLAGSVC_DATABASE_URL": f"sqlite:///{tmp_path}/db"}
    env |= {key: filled(value) for key, value in place.variables.items()}
    called = CommandFolder(tmp_path).call([filled(word) for word in place.arguments.split()], env)
    assert called.code == 2, called
    assert "Traceback" not in called.err
    assert called.err.count("\n") == 1, called.err
    assert path in called.err or "this is no backup" in called.err
