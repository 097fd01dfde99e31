"""The npm packages that tests run beside ours, in one table; fetched into `.cache/peers` when first needed."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support import needs

FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "peers"
MINIMUM_NODE = 20  # what unleash-client and unleash-server ask for

MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
NODE_22 = f"node-linux-{MACHINES.get(platform.machine(), platform.machine())}"
"""What npm's `node` fetches by its script: the program itself. The newer server asks for it."""

# folder → packages in it, version and seconds allowed for fetching. The servers are large and have folders of their own.
PACKAGES: dict[str, dict[str, str]] = {
    "specification": {"@unleash/client-specification": "6.1.0"},
    "clients": {"@unleash/proxy": "1.4.19", "unleash-client": "6.12.1", "unleash-proxy-client": "3.8.2"},
    "react": {"@unleash/proxy-client-react": "5.1.0", "unleash-proxy-client": "3.8.2", "react": "18.3.1", "react-dom": "18.3.1"},
    "accessibility": {"axe-core": "4.14.1"},
    "openfeature": {
        "@openfeature/ofrep-web-provider": "0.4.3",
        "@openfeature/web-sdk": "1.10.0",
        "@openfeature/ofrep-provider": "0.1.3",
        "@openfeature/server-sdk": "1.23.0",
        "@openfeature/core": "1.12.0",
    },
    "server": {"unleash-server": "7.5.1"},
    "server-8": {"unleash-server": "8.2.0", NODE_22: "22.23.3"},
}
SECONDS = {
    "specification": 120,
    "clients": 300,
    "react": 300,
    "accessibility": 120,
    "openfeature": 120,
    "server": 900,
    "server-8": 900,
}

# No scripts of other people are run, nothing is reported anywhere, and no lock file is left.
NPM_OPTIONS = (
    "--ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error "
    "--fetch-retries=4 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=15000"
)


def package(name: str, folder: str = "") -> Path:
    """Return the folder of the npm package `name`; fetch it if necessary. Skips the test if that is impossible.

    `folder` names the row of the table if several rows have the package; the default is the first.
    """
    found = find(name, folder)
    return found if isinstance(found, Path) else needs.missing(found)


def node() -> str:
    """Return the path of node. Skips the test if it is missing or too old."""
    path, reason = _node()
    return path if path else needs.missing(reason)


def node_of(folder: str) -> str:
    """Return the path of the node that the packages of a row need: a package of the row, or the installed node."""
    return str(package(NODE_22, folder) / "bin" / "node") if NODE_22 in PACKAGES[folder] else node()


def find(name: str, folder: str = "") -> Path | str:
    """Return the folder of the npm package `name`, or the reason why it cannot be had."""
    folder = folder or next(folder for folder, packages in PACKAGES.items() if name in packages)
    reason = _obtain(folder)
    return reason or FOLDER / folder / "node_modules" / name


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Keep other processes from the folder of a row of the table until the block ends."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{folder}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def _node() -> tuple[str, str]:
    path = shutil.which("node")
    if path is None:
        return "", "node is not installed"
    version = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    if int(version.lstrip("v").split(".")[0] or 0) < MINIMUM_NODE:
        return "", f"node is {version.strip()}, the npm peers need {MINIMUM_NODE} or newer"
    return path, ""


@functools.cache
def _obtain(folder: str) -> str:
    """Fetch the packages of `folder` unless they are there; return the reason why they are not, empty when they are."""
    with locked(folder):
        target = FOLDER / folder
        if _mark(target / ".fetched") == PACKAGES[folder]:
            return ""
        if _mark(target / ".failed").get("run") == _run():
            return _mark(target / ".failed")["reason"]
        reason = _node()[1] or _fetch(folder, target)
        mark = {"run": _run(), "reason": reason} if reason else PACKAGES[folder]
        _write(target / (".failed" if reason else ".fetched"), mark)
        return reason


def _fetch(folder: str, target: Path) -> str:
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    _write(target / "package.json", {"private": True, "dependencies": PACKAGES[folder]})
    try:
        done = subprocess.run(
            [npm, "install", *NPM_OPTIONS.split()],
            cwd=target, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS[folder], check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"npm did not fetch {_titles(folder)} within {SECONDS[folder]} s"
    return "" if done.returncode == 0 else f"npm could not fetch {_titles(folder)}: {_first_error(done.stderr)}"


def _titles(folder: str) -> str:
    return ", ".join(f"{name} {version}" for name, version in PACKAGES[folder].items())


def _first_error(output: str) -> str:
    lines = [line.removeprefix("npm error ").strip() for line in output.splitlines() if line.startswith("npm error ")]
    return "; ".join(lines[:2]) or f"npm said {output.strip()[:200]!r}"


def _run() -> str:
    """Name the running test run, the same in each of its processes: what failed once is not tried by each again."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))


def _mark(path: Path) -> dict[str, str]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _write(path: Path, content: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


if __name__ == "__main__":
    for row in PACKAGES:
        if why := _obtain(row):
            print(f"{_titles(row)}: {why}")
