"""Puts the root filesystem of the image together: `rootfs.py TARGET ENVIRONMENT`, on Debian, run by the Python of ENVIRONMENT.

TARGET gets the environment, its Python without what only development needs, the libraries that both load, and a bill of materials.
Nothing else is in the image: no shell, no package manager, no program but Python.
"""

from __future__ import annotations

import compileall
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

import sbom

NOT_RUN = ["config-*", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "*-packages", "test", "tests", "tkinter", "turtle*", "venv"]
"""What Python's own folder of modules has for development."""
NOT_LOADED = ["_ctypes_test*", "_curses*", "_dbm*", "_gdbm*", "_test*", "_tkinter*", "nis*", "readline*", "*xx*"]
"""Extension modules of Python for terminals, windows and tests, whose libraries the image does not need either."""
NOT_NEEDED = ["__pycache__", "activate*", "Activate*", "*.pyi", "*.c", "*.h", "*.pyx", "*.pxd", "include"]
"""What packages and environments bring, and Python as well, that nothing imports or runs."""
LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)
"""A library that the loader finds, in the output of ldd."""
USER = 65532
TEXTS = {
    "etc/passwd": f"root:x:0:0::/:/sbin/nologin\nflagsvc:x:{USER}:{USER}::/:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nflagsvc:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
"""Files that the C library reads. Without the last one, the name server is asked for names that /etc/hosts has."""
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
CACHE = "/etc/ld.so.cache"


def main(target: Path, environment: Path) -> None:
    """Fill the folder `target`, which must not exist. Raises CalledProcessError where a program of Debian fails."""
    copy_python(target)
    copy(environment, target)
    for name, text in TEXTS.items():
        path = below(target, Path("/", name))
        path.write_text(text)
    if AUTHORITIES.exists():
        shutil.copy(AUTHORITIES, below(target, AUTHORITIES))
    (target / "tmp").mkdir(exist_ok=True)
    (target / "tmp").chmod(0o1777)
    libraries = copy_libraries(target)
    [packages] = (below(target, environment) / "lib").glob("python*/site-packages")
    debian = list(record(target, {AUTHORITIES, *libraries}))
    compile_modules(target)
    [compiler] = [pin.version for pin in sbom.pins(Path("requirements/build.txt").read_text()).values() if pin.name == "mypy"]
    bill = below(target, Path("/usr/share/sbom/flagsvc.cdx.json"))
    bill.write_text(sbom.of_image(packages, sorted(debian), platform.python_version(), compiler))


def below(target: Path, path: Path) -> Path:
    """Return where an absolute path lies in the target; its folder is there."""
    moved = target / path.relative_to("/")
    moved.parent.mkdir(parents=True, exist_ok=True)
    return moved


def copy(source: Path, target: Path, *left_out: str) -> None:
    """Copy a folder to the same path in the target, links as links."""
    shutil.copytree(source, below(target, source), symlinks=True, ignore=shutil.ignore_patterns(*NOT_NEEDED, *left_out))


def copy_python(target: Path) -> None:
    """Copy the interpreter and its modules. The folders that are links in the system, such as /lib, are links here too."""
    for link in (each for each in Path("/").iterdir() if each.is_symlink() and each.name.startswith("lib")):
        folder = link.resolve().relative_to("/")
        (target / folder).mkdir(parents=True, exist_ok=True)
        (target / link.name).symlink_to(folder)
    program = Path(sys.base_prefix, "bin", f"python{sysconfig.get_python_version()}").resolve()
    shutil.copy(program, below(target, program))
    for name in ("python", "python3"):
        below(target, program.with_name(name)).symlink_to(program.name)
    copy(Path(sysconfig.get_path("stdlib")), target, *NOT_RUN, *NOT_LOADED)


def copy_libraries(target: Path) -> set[Path]:
    """Copy the libraries that programs and extension modules of the target load, and make the loader's cache; return them.

    Debug symbols are left out, but for libraries that auditwheel has changed, which `strip` may break.
    """
    binaries = [path for path in target.rglob("*") if not path.is_symlink() and path.is_file() and is_elf(path)]
    subprocess.run(["strip", "--strip-debug", *(path for path in binaries if not path.parent.name.endswith(".libs"))], check=True)
    shown = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True).stdout
    found = {Path(name) for name in LIBRARY.findall(shown) if not Path(name).is_relative_to(target)}
    for library in found:
        shutil.copy(library.resolve(), below(target, library))
    folders = sorted({str(library.parent) for library in found})
    subprocess.run(["/sbin/ldconfig", "-r", str(target), "-X", "-C", CACHE, *folders], check=True)
    return found


def is_elf(path: Path) -> bool:
    """Return whether a file is a program or a library."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def record(target: Path, files: set[Path]) -> Iterator[tuple[str, str, str]]:
    """Write down which packages of Debian the files are from, as scanners look for it, with their licences; yield the packages."""
    patterns = [f"*/{path.resolve().name}" for path in files if path.exists()]
    shown = subprocess.run(["dpkg-query", "--search", *patterns], capture_output=True, text=True).stdout
    for name in sorted({line.partition(":")[0] for line in shown.splitlines() if not line.startswith("diversion ")}):
        status = subprocess.run(["dpkg-query", "--status", name], capture_output=True, text=True, check=True).stdout
        below(target, Path("/var/lib/dpkg/status.d", name)).write_text(status)
        if (licence := Path("/usr/share/doc", name, "copyright")).exists():
            shutil.copy(licence, below(target, licence))
        fields = dict(line.split(": ", 1) for line in status.splitlines() if re.match(r"(Version|Architecture): ", line))
        yield name, fields["Version"], fields["Architecture"]


def compile_modules(target: Path) -> None:
    """Compile all Python modules, since nothing can be written later. A hash in place of a time makes the same bytes each time."""
    mode = PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(target, quiet=2, maxlevels=30, workers=0, stripdir=str(target), prependdir="/", invalidation_mode=mode)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
