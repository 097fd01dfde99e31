"""Writes bills of materials (CycloneDX 1.6, JSON) of the wheel (PEP 770) and of the image.

They have no time and no random number, so that a repeated build is the same bytes. Names, versions and digests come from
requirements/runtime.txt and from what is installed.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any, NamedTuple

Component = dict[str, Any]
REQUIREMENTS = Path("requirements/runtime.txt")
PIN = re.compile(r"^([\w.-]+)(?:\[\w+\])?==(\S+)( ;)?(.*?)(?=^[\w.-]+(?:\[|==)|\Z)", re.MULTILINE | re.DOTALL)
DIGEST = re.compile(r"--hash=sha256:([0-9a-f]{64})")

VENDORED = {
    "htmx-4.0.1.min.js": (
        "htmx.org@4.0.1",
        "dist/htmx.min.js",
        "0BSD",
        "Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn",
    )
}
"""Name of a file of others in pages/static, with its version → npm package and path in it, licence, SHA-384 in base64."""


class Pin(NamedTuple):
    """A pinned package: its name, its version, whether only some platforms need it, and the SHA-256 of its archives."""

    name: str
    version: str
    conditional: bool
    digests: list[str]


def pins(text: str) -> dict[str, Pin]:
    """Return the pins of a file of requirements, by normal name."""
    found = (Pin(each[1], each[2], bool(each[3]), DIGEST.findall(each[4])) for each in PIN.finditer(text))
    return {normal(pin.name): pin for pin in found}


def normal(name: str) -> str:
    """Return the name of a distribution as all its spellings are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def library(purl: str, *, licence: str | None = None, sha384: bytes = b"", archives: Iterable[str] = ()) -> Component:
    """Return a component by its package URL, with its licence, its own digest and the SHA-256 of the archives that bring it."""
    name, _, version = purl.partition("?")[0].rpartition("/")[2].rpartition("@")
    made: Component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if licence:
        made["licenses"] = [{"expression": licence}]
    if sha384:
        made["hashes"] = [{"alg": "SHA-384", "content": sha384.hex()}]
    if listed := [{"alg": "SHA-256", "content": digest} for digest in archives]:
        made["externalReferences"] = [{"type": "distribution", "url": purl, "hashes": listed}]
    return made


def pinned(pin: Pin, licence: str | None = None) -> Component:
    """Return a pinned package; a package that only some platforms need is optional."""
    made = library(f"pkg:pypi/{normal(pin.name)}@{pin.version}", licence=licence, archives=pin.digests)
    return made | ({"scope": "optional"} if pin.conditional else {})


def bill(kind: str, version: str, inside: Iterable[Component], beside: Iterable[Component]) -> str:
    """Return the bill of flagsvc: what it has inside, and the packages that it runs with."""
    root: Component = {
        "type": kind,
        "bom-ref": "flagsvc",
        "name": "flagsvc",
        "version": version,
        "purl": f"pkg:pypi/flagsvc@{version}",
    }
    root |= {"licenses": [{"expression": "Apache-2.0"}], "components": list(inside)}
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": root}}
    return json.dumps(document | {"components": list(beside)}, indent=1, sort_keys=True) + "\n"


def inside(compiler: str) -> list[Component]:
    """Return what others wrote of flagsvc itself: files of pages, and where it is compiled the C runtime of mypyc (its version)."""
    files = [library(f"pkg:npm/{row[0]}", licence=row[2], sha384=base64.b64decode(row[3])) for row in VENDORED.values()]
    return files + ([library(f"pkg:pypi/mypy@{compiler}", licence="MIT")] if compiler else [])


def of_wheel(version: str, compiler: str) -> str:
    """Return the bill of a wheel: its inside, and the pinned packages of all extras that its release is tested with."""
    return bill("library", version, inside(compiler), map(pinned, pins(REQUIREMENTS.read_text()).values()))


def of_image(packages: Path, debian: Iterable[tuple[str, str, str]], python: str, compiler: str) -> str:
    """Return the bill of an image: its Python packages, Python itself, and Debian's packages (name, version, architecture)."""
    known, licence = pins(REQUIREMENTS.read_text()), "License-Expression"
    found = sorted(Distribution.discover(path=[str(packages)]), key=lambda each: normal(each.name))
    installed = [
        pinned(known[normal(each.name)]._replace(conditional=False), (each.metadata.get_all(licence) or [None])[0])
        for each in found
        if each.name != "flagsvc"
    ]
    [version] = [each.version for each in found if each.name == "flagsvc"]
    system = [library(f"pkg:deb/debian/{name}@{number}?arch={machine}") for name, number, machine in debian]
    return bill("container", version, inside(compiler), [*installed, library(f"pkg:generic/python@{python}"), *system])
