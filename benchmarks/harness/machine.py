"""The machine and the versions of a measurement, without names of this machine or its folders."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("uvicorn", "uvloop", "httptools", "msgspec", "isal", "mypy")


def about(moment: datetime.datetime) -> dict[str, Any]:
    """Return the date, the commit, the machine and the versions of what is ours."""
    versions = {"Python": platform.python_version(), "flagsvc": ours()}
    versions |= {name: version for name in LIBRARIES if (version := installed(name))}
    return {
        "date": moment.strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": machine(),
        "versions": versions,
    }


def facts(known: dict[str, Any]) -> list[str]:
    """Return lines for a page of what `about` gave."""
    return [
        f"- Date: {known['date']}",
        f"- Commit: {known['commit']}",
        f"- Machine: {', '.join(f'{name} {value}' for name, value in known['machine'].items())}",
        f"- Versions: {', '.join(f'{name} {version}' for name, version in known['versions'].items())}",
    ]


def machine() -> dict[str, Any]:
    """Return the processor, its cores, the memory and the kernel."""
    return {
        "processor": first("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": os.cpu_count(),
        "memory GB": round(int((first("/proc/meminfo", "MemTotal") or "0").split()[0]) / 2**20),
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
    }


def first(path: str, name: str) -> str:
    """Return the value of the first line of a file of the kernel's that has a name."""
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def installed(name: str) -> str:
    """Return the version of a package, empty where it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def ours() -> str:
    """Return our version, and whether all, some or none of what can be compiled is."""
    from flagsvc.core.version import VERSION

    source = ROOT / "src" / "flagsvc"
    lines = [line.split("#")[0].strip() for line in (source / "compiled.txt").read_text().splitlines()]
    modules = [source / line for line in lines if line]
    built = [path for path in modules if list(path.parent.glob(f"{path.stem}.*.so"))]
    return f"{VERSION}, {'compiled' if len(built) == len(modules) else f'{len(built)} of {len(modules)} modules compiled'}"


def commit() -> str:
    """Return the commit that was measured, and whether files differed from it."""
    found = git("rev-parse", "--short=12", "HEAD")
    changes = git("status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks")
    return f"{found}{' with changes' if changes else ''}" if found else "unknown"


def git(*arguments: str) -> str:
    """Return what git says, empty where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
