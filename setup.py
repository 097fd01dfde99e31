"""Compile the hot route with mypyc where a C compiler can build; install the same source interpreted where none can."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
COMPILED = Path("src/flagsvc/compiled.txt")
CACHE = "build/mypy_cache"
"""Where mypyc keeps what it knows of the sources: its own folder, since mypy may run at the same time (`make -j`)."""
HIDDEN = ["-fvisibility=hidden"] if os.name == "posix" else []
"""What lets the C compiler inline our functions into one another: nobody outside the library may replace them."""

TRASHCAN = """
/* Classes that are not watched for cycles have no header for the collector, where CPython would put them aside. */
#if defined(Py_TRASHCAN_BEGIN_CONDITION)
#undef CPy_TRASHCAN_BEGIN
#define CPy_TRASHCAN_BEGIN(op, dealloc) Py_TRASHCAN_BEGIN_CONDITION(op, PyType_IS_GC(Py_TYPE(op)))
#endif
"""
"""What follows mypyc's own headers in the C source: CPython puts an object aside whose owner's owner's … owner, of fifty and more,
is given back just now, and writes into a header that acyclic classes do not have."""
OWN_HEADER = re.compile(r'#include "__native_internal_\w+\.h"\n')

LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)]+)\)")
"""A link of README.md to something in the repository, or a picture of it (!)."""
WORDS_ONLY = {"egg_info", "dist_info", "sdist"}
"""The commands that tell about the package or pack its source: by themselves they need nothing compiled."""
BUILDS = {"build", "build_ext", "bdist_wheel", "install", "develop", "editable_wheel"}
"""The commands that do."""
BEAT_S = 10
"""Seconds between two lines that say that the compilation goes on."""

WRONG_SOURCES = (
    "flagsvc: mypyc writes other C source than setup.py expects: {number} places for TRASHCAN instead of 1. Without it a deep"
    " structure crashes the process. Compile with the mypy of requirements/build.txt, or adapt OWN_HEADER; FLAGSVC_PURE=1 installs"
    " without compiling"
)
SLOWER = "the engine stays interpreted (about ten times slower)"


def compiler() -> list[str]:
    """Return the C compiler's command: what CC says, else Python's own, else a usual one; nothing when there is none."""
    given = os.environ.get("CC")
    names = [given] if given else [sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    commands = (shlex.split(name) for name in names if name)
    return next((command for command in commands if command and shutil.which(command[0])), [])


def include() -> list[str]:
    """Return the folders where Python's headers are looked for."""
    return list(dict.fromkeys(path for key in ("include", "platinclude") if (path := sysconfig.get_path(key))))


def builds(command: list[str]) -> bool:
    """Return whether the compiler makes a library of two lines that want Python.h."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <Python.h>\nint flagsvc_probe;\n")
        headers = [f"-I{path}" for path in include()]
        made = [*command, *headers, "-shared", "-fPIC", str(source), "-o", str(Path(folder, "probe.so"))]
        try:
            return subprocess.run(made, timeout=60).returncode == 0
        except (OSError, subprocess.SubprocessError):
            return False


def modules() -> list[str]:
    """Return the source paths that are compiled: one a line in compiled.txt, `#` starts a comment."""
    lines = (line.split("#")[0].strip() for line in COMPILED.read_text().splitlines())
    return [f"src/flagsvc/{line}" for line in lines if line]


def reason_left_out() -> str:
    """Return why nothing is compiled, or nothing. Raises SystemExit where CI=true or REQUIRE_ALL=1 and the compiler is broken."""
    if os.environ.get("FLAGSVC_PURE") == "1":
        return "FLAGSVC_PURE=1"
    command = compiler()
    if not command:
        return f"no C compiler found{' at CC' if os.environ.get('CC') else ''}"
    if not any(Path(path, "Python.h").is_file() for path in include()):
        return "no Python.h found (the headers are a package of their own, such as python3-dev)"
    if builds(command):
        os.environ["CC"] = shlex.join(command)
        return ""
    if os.environ.get("CI") == "true" or os.environ.get("REQUIRE_ALL") == "1":
        raise SystemExit(f"flagsvc: the C compiler `{command[0]}` cannot build; FLAGSVC_PURE=1 installs without it")
    return f"the C compiler `{command[0]}` cannot build"


def readme() -> str:
    """Return README.md as it reads outside the repository: its relative links point to the repository's address."""
    source = PROJECT["project"]["urls"]["Source"]

    def whole(found: re.Match[str]) -> str:
        sign, text, path = found.groups()
        return f"{sign}{text}({source}/{'raw' if sign else 'blob'}/main/{path})"

    return LINK.sub(whole, Path("README.md").read_text(encoding="utf-8"))


def tell(text: str) -> None:
    """Print a line about the build to standard error."""
    print(f"flagsvc: {text}", file=sys.stderr, flush=True)


@contextmanager
def told(text: str) -> Iterator[None]:
    """Say what is being done while the block runs: at its start, and how long it has taken every few seconds."""
    tell(text)
    begun, done = time.monotonic(), threading.Event()

    def beat() -> None:
        while not done.wait(BEAT_S):
            tell(f"  … {time.monotonic() - begun:.0f} s")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Build(build_ext):
    """setuptools' command that compiles, which says what it does."""

    def run(self) -> None:
        """Compile, and mark the libraries beside the sources as new, also those that setuptools copies with an old time."""
        super().run()
        if self.inplace:
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).touch()

    def build_extensions(self) -> None:
        """Compile the C source."""
        with told("step 2 of 2: compiling the C source to native code, a minute or two"):
            super().build_extensions()


class Wheel(bdist_wheel):
    """setuptools' command that makes a wheel, which adds the bill of materials, and gives its files one mode."""

    def write_wheelfile(self, wheelfile_base: str, *args: str) -> None:
        """Write what is about the wheel, when all else of it is in its folder."""
        super().write_wheelfile(wheelfile_base, *args)
        sys.path.insert(0, "release")
        from sbom import of_wheel

        bills = Path(wheelfile_base, "sboms")
        bills.mkdir(exist_ok=True)
        compiler = version("mypy") if self.distribution.ext_modules else ""
        (bills / "flagsvc.cdx.json").write_text(of_wheel(self.distribution.get_version(), compiler))
        for path in Path(self.bdist_dir).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


class Sdist(sdist):
    """setuptools' command that packs the source: files of one time, one owner and one mode, so the same bytes each time."""

    def make_archive(self, base_name: str, *args: object, base_dir: str, **options: object) -> str:
        """Return the path of the archive of the folder `base_dir`."""
        path, moment = Path(f"{base_name}.tar.gz"), int(os.environ["SOURCE_DATE_EPOCH"])

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            mode = 0o755 if member.isdir() else 0o644
            return member.replace(mtime=moment, mode=mode, uid=0, gid=0, uname="", gname="", deep=False)

        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            path.open("wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=moment) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
        ):
            tar.add(base_dir, filter=plain)
        return str(path)


def extensions() -> list[object]:
    """Return the extension modules to build; none where something hinders, which standard error tells."""
    reason = reason_left_out()
    if reason:
        tell(f"{reason}: {SLOWER}")
        return []
    from mypyc.build import mypycify

    paths = modules()
    with told(f"step 1 of 2: translating {len(paths)} modules to C with mypyc"):
        options = ["--config-file=pyproject.toml", f"--cache-dir={CACHE}"]
        # Debug symbols would take a fifth of the compilation and twice its memory.
        made = mypycify([*options, *paths], opt_level=os.environ.get("FLAGSVC_OPT", "3"), debug_level="0")
    changed = 0
    for extension in made:
        extension.extra_compile_args += HIDDEN
        changed += sum(map(mend, extension.sources))
    if changed != 1:
        raise SystemExit(WRONG_SOURCES.format(number=changed))
    return list(made)


def mend(path: str) -> int:
    """Put TRASHCAN after mypyc's own header in a C source, and return how often it is there: 1, or 0 without that header."""
    source = Path(path)
    text = source.read_text()
    if TRASHCAN in text:
        return text.count(TRASHCAN)
    text, number = OWN_HEADER.subn(lambda found: found[0] + TRASHCAN, text)
    source.write_text(text)
    return number


os.environ.setdefault("SOURCE_DATE_EPOCH", PROJECT["tool"]["cibuildwheel"]["environment"]["SOURCE_DATE_EPOCH"])
setup(
    ext_modules=[] if WORDS_ONLY & set(sys.argv) and not BUILDS & set(sys.argv) else extensions(),
    cmdclass={"bdist_wheel": Wheel, "build_ext": Build, "sdist": Sdist},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
