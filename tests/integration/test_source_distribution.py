"""The source distribution. `test_container.py` installs from the archive, for the image is made so.

The plain package alone, in its own environment: a proxy runs, and a feature that needs an extra names it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import wheels
from flagsvc.core.extras import PACKAGE, WHERE
from support.fake_upstream import fake_upstream
from support.processes import ROOT, Answer, answers, ask, clean_environment, free_port, proxy_environment, running, scratch

SECONDS = 300
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)#]+)[^)]*\)")
OURS = "https://github.com/flagsvc/flagsvc/"


def call(folder: Path, *command: str, **env: str) -> str:
    """Return the output of a command that runs in `folder` and must succeed."""
    keep = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "NO_PROXY"))}
    given = clean_environment(folder) | keep | env
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def archive() -> Iterator[Path]:
    """Yield the source distribution of the repository, in a folder of its own."""
    with scratch() as folder:
        built_from = source(folder / "source")
        build = ("-m", "build", "--sdist", "--no-isolation", "--outdir", str(folder / "dist"))
        call(built_from, sys.executable, *build, FLAGSVC_PURE="1")
        yield next((folder / "dist").glob("flagsvc-*.tar.gz"))


def test_it_holds_what_a_build_reads_and_nothing_that_was_built(archive: Path) -> None:
    """No compiled module, no C source, no bytecode."""
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"setup.py", "pyproject.toml", "LICENSE", "README.md", "src/flagsvc/compiled.txt", "src/flagsvc/py.typed"} <= names
    assert not {name for name in names if name.endswith((".so", ".c", ".pyc"))}


def test_the_page_of_the_package_has_links_that_work_anywhere(archive: Path) -> None:
    """A package index shows the README without the repository around it: files by their pages, pictures as they are."""
    with tarfile.open(archive) as tar:
        found = tar.extractfile(next(name for name in tar.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO")))
        assert found is not None
        text = found.read().decode()
    links = LINK.findall(text)
    assert len(links) > 20
    for sign, link in links:
        assert link.startswith("https://"), link
        if link.startswith(OURS):
            kind, _, path = link.removeprefix(OURS).partition("/main/")
            assert kind == ("raw" if sign else "blob"), "a page that shows a picture is none"
            assert (ROOT / path).is_file(), path


EXTRA_PACKAGES = {"alembic", "can_ada", "joserfc", "psycopg", "redis", "rich", "sqlalchemy", "yaml"}
"""Packages that the plain package does not install."""
PATTERN = {"contextName": "userId", "operator": "REGEX", "value": "^[0-9]+$"}
DOCUMENT = {
    "version": 2,
    "features": [{"name": "first", "enabled": True, "strategies": [{"name": "default", "constraints": [PATTERN]}]}],
}
"""A flag with a pattern, for which a library is imported late."""


def pip(*arguments: object) -> None:
    """Run pip of the tests' own environment, which must succeed."""
    words = ("-m", "pip", *map(str, arguments), "--quiet", "--disable-pip-version-check")
    with scratch() as home:
        call(home, sys.executable, *words, FLAGSVC_PURE="1", PYTHONPATH="")


def source(folder: Path) -> Path:
    """Return a writable folder with the input of a build."""
    folder.mkdir()
    for name in wheels.SOURCES:
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture(scope="module")
def environment() -> Iterator[Path]:
    """Give the folder of programs of an environment with the plain package, interpreted, its packages at the pinned versions."""
    with scratch() as folder:
        pins = re.findall(r"^([\w.-]+)(?:\[\w+\])?(==\S+)", (ROOT / "requirements/runtime.txt").read_text(), re.MULTILINE)
        (folder / "pins.txt").write_text("\n".join(map("".join, pins)))
        pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source(folder / "source"))
        [wheel] = folder.glob("flagsvc-*.whl")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "plain"], check=True, timeout=SECONDS)
        python = folder / "plain/bin/python"
        pip("--python", python, "install", "--no-compile", "--constraint", folder / "pins.txt", wheel)
        yield python.parent


def flagsvc(environment: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command with nothing in its environment but `env`."""
    with scratch() as home:
        given = clean_environment(home) | {"PYTHONPATH": ""} | env
        command = [str(environment / "flagsvc"), *arguments]
        return subprocess.run(command, cwd=home, env=given, capture_output=True, text=True, timeout=60)


def test_it_brings_no_package_of_an_extra(environment: Path) -> None:
    """The plain package installs no package of an extra, directly or indirectly."""
    code = f"import importlib.util as u; print([n for n in {sorted(EXTRA_PACKAGES)} if u.find_spec(n)])"
    done = subprocess.run([environment / "python", "-c", code], capture_output=True, text=True, timeout=60, env={})
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_it_runs_a_proxy(environment: Path) -> None:
    """The proxy runs with an upstream, a scrape and the page of the documentation; no module is missing."""
    port = free_port()
    with fake_upstream(DOCUMENT) as upstream, scratch() as folder:
        env = proxy_environment(upstream.url, port, {"ENABLE_OAS": "true", "PYTHONPATH": ""})
        with running("plain proxy", [environment / "flagsvc", "proxy"], env=env, folder=folder) as program:
            url = f"http://127.0.0.1:{port}"
            program.wait(lambda: answers(f"{url}/proxy/health"), "ready")
            asked: dict[str, Answer] = {
                path: ask(f"{url}{path}", headers={"Authorization": env["UNLEASH_PROXY_CLIENT_KEYS"]})
                for path in ("/proxy?userId=7", "/proxy/internal-backstage/prometheus", "/docs/openapi/swagger_bundle.js")
            }
            assert {path: answer.status for path, answer in asked.items()} == dict.fromkeys(asked, 200)
            assert [toggle["name"] for toggle in asked["/proxy?userId=7"].json()["toggles"]] == ["first"]
            assert program.stop() == 0
            assert "Traceback" not in program.output()


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [(("server",), "server"), (("import", "flags.json", "--url", "http://127.0.0.1:9", "--dry-run"), "cli")],
    ids=["server", "cli"],
)
def test_what_needs_an_extra_says_which(environment: Path, arguments: tuple[str, ...], extra: str) -> None:
    """One sentence on standard error names the command that installs it; the exit code is 2."""
    done = flagsvc(environment, *arguments)
    sentence = f"the extra `{extra}` is not installed; type{WHERE}: pip install '{PACKAGE}[{extra}]'"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"flagsvc {arguments[0]}: {sentence}\n")
