"""The container without a container engine: the Dockerfile's own steps are run, one by one, on this machine.

What a step may not do here (install packages of the system, write outside a folder) is replaced, and each replacement is a
row below; a step that no row covers runs as it stands. To compile takes minutes, so only the long run has an image with a
compiled engine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from packaging.markers import Marker

from flagsvc.core.version import COMPILED, INTERPRETED
from flagsvc.server.store.seed.file import parse_seed
from support import forms, needs, peers
from support.fake_upstream import fake_upstream
from support.processes import ROOT, answers, clean_environment, free_port, proxy_environment, running, scratch

SECONDS = 900
"""For one step: compiling takes a minute and a half, and five on a busy machine."""
KEPT = ("PIP_", "SSL_", "HTTP", "NO_PROXY")
"""The beginnings of the variables that the steps get."""
NOT_HERE = {
    "apt-get": "the C compiler is here",
    "python -m venv /tools": "the environment of the tests has the tools",
    "/tools/bin/python -m pip install": "the environment of the tests has the tools",
}
"""The beginning of each RUN step that is not run → the reason."""


class Step(NamedTuple):
    """One instruction of the Dockerfile."""

    instruction: str
    text: str


def steps() -> list[list[Step]]:
    """The instructions of the Dockerfile, stage by stage, without the FROM that begins each."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    stages: list[list[Step]] = []
    for line in text.splitlines():
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            stages.append([])
        elif line and not line.startswith("#"):
            stages[-1].append(Step(instruction, rest.strip()))
    return stages


def of(stage: list[Step], instruction: str) -> list[str]:
    """The texts of all instructions of one kind."""
    return [step.text for step in stage if step.instruction == instruction]


BUILD, FINAL = steps()


def check_client_specification(packages: Path) -> None:
    """Run all cases with the package that lies in the folder `packages`, and no other of its name."""
    if isinstance(reason := peers.find("@unleash/client-specification"), str):
        needs.missing(reason)
    with scratch() as folder:
        env = clean_environment(folder) | {"PYTHONPATH": str(packages)}
        where = python(env, "-c", "import flagsvc; print(flagsvc.__file__)")
        assert Path(where.strip()).is_relative_to(packages)
        ran = python(env, "-m", "pytest", "tests/conformance/test_client_specification.py", "-v", "--noconftest")
        assert re.search(r"[1-9]\d\d passed", ran), ran[-500:]


def python(env: dict[str, str], *arguments: str) -> str:
    """Return what Python prints, which must succeed."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


class Machine:
    """A folder that stands for the builder's root. Paths of the Dockerfile are moved into it."""

    def __init__(self, root: Path, form: str) -> None:
        self.root = root
        self.form = form
        self.work = root
        self.ran: list[str] = []
        self.final = root / "rootfs"

    def moved(self, text: str) -> str:
        """A command line with the Dockerfile's folders in this one, and its tools replaced by the tests' own."""
        text = text.replace("/tools/bin/python", sys.executable)
        text = re.sub(r"^python\b", sys.executable, text)
        return re.sub(r"(?<![\w.])/(opt|wheels|state|source|rootfs)\b", rf"{self.root}/\1", text)

    def do(self, step: Step) -> None:
        """Carry out one instruction of the build stage."""
        if step.instruction == "WORKDIR":
            self.work = Path(self.moved(step.text))
            self.work.mkdir(parents=True, exist_ok=True)
        elif step.instruction == "COPY":
            self.copy(step.text)
        elif step.instruction == "RUN" and not any(step.text.startswith(begin) for begin in NOT_HERE):
            self.run(self.moved(step.text))
            self.ran.append(step.text)

    def copy(self, text: str) -> None:
        """Copy from the repository, what .dockerignore lets through."""
        *sources, target = text.split()
        for source in sources:
            destination = self.work / target / (source if len(sources) > 1 else "")
            if (ROOT / source).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info", "*.in")
                shutil.copytree(ROOT / source, destination, ignore=ignored)
            else:
                shutil.copy(ROOT / source, destination)

    def run(self, command: str) -> None:
        """Run a command line as the builder's shell would."""
        keep = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        env = clean_environment(self.root) | keep | {"PYTHONPATH": ""}
        if self.form == INTERPRETED:
            env["FLAGSVC_PURE"] = "1"
        else:
            env["FLAGSVC_OPT"] = "0"
        done = subprocess.run(["sh", "-ec", command], cwd=self.work, env=env, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.fixture(scope="module", params=[INTERPRETED, pytest.param(COMPILED, marks=pytest.mark.long)])
def image(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """A folder in which the build stage has run; nothing in it can be written by its owner or anybody else."""
    if sys.platform != "linux":
        needs.missing("the container is a Linux one")
    if request.param == COMPILED:
        needs.program("cc", "gcc", "clang")
    for name in ("dpkg-query", "strip"):
        needs.program(name)
    with scratch() as folder:
        folder.chmod(0o755)
        machine = Machine(folder, request.param)
        for step in BUILD:
            machine.do(step)
        for path in [folder, *folder.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)
        (machine.final / "state").mkdir()
        (machine.final / "state").chmod(0o777)
        yield machine
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)


def installed(image: Machine) -> Path:
    """The folder of the installed package."""
    [package] = (image.root / "opt" / "flagsvc" / "lib").glob("python*/site-packages/flagsvc")
    return package


class TestTheImage:
    """The build stage leaves what the final stage needs."""

    def test_every_step_was_run_or_is_excused(self, image: Machine) -> None:
        """Each RUN step of the Dockerfile was run or has a reason, and each reason has a step."""
        excused = [text for text in of(BUILD, "RUN") if text not in image.ran]
        assert len(image.ran) >= 5
        for text in excused:
            assert any(text.startswith(begin) for begin in NOT_HERE), text
        for begin in NOT_HERE:
            assert any(text.startswith(begin) for text in excused), begin

    @pytest.mark.long
    @pytest.mark.parametrize("image", [COMPILED], indirect=True)
    def test_the_engine_is_compiled(self, image: Machine) -> None:
        """Every module that is meant to be compiled is there as machine code."""
        meant = [installed(image) / path.relative_to(ROOT / "src/flagsvc") for path in forms.listed()]
        assert meant, "nothing is listed in compiled.txt"
        missing = [path for path in meant if not list(path.parent.glob(f"{path.stem}.*.so"))]
        assert missing == []

    def test_what_is_installed_from_the_archive_answers_the_client_specification(self, image: Machine) -> None:
        """The wheel is built from the source distribution, which holds all that a build reads."""
        assert list((image.root / "wheels").glob("flagsvc-*.tar.gz"))
        check_client_specification(installed(image).parent)

    def test_only_what_runs_is_installed(self, image: Machine) -> None:
        """The environment has the pinned requirements and this package, and no pip, compiler or tests."""
        packages = {path.name.partition("-")[0].lower() for path in installed(image).parent.glob("*.dist-info")}
        lines = re.findall(r"^([\w-]+)(?:\[\w+\])?==\S+(.*)", (ROOT / "requirements/runtime.txt").read_text(), re.MULTILINE)
        wanted = [(name, marker.strip(" ;\\")) for name, marker in lines]
        pinned = [name for name, marker in wanted if not marker or Marker(marker).evaluate()]
        assert packages == {name.lower().replace("-", "_") for name in pinned} | {"flagsvc"}
        assert (installed(image) / "py.typed").exists()

    def test_the_installed_package_works(self, image: Machine) -> None:
        """The program that tests the wheels of a release finds nothing wrong: answers, both programs, a page, the bill."""
        with scratch() as folder:
            command, env = (
                [image.root / "opt/flagsvc/bin/python", ROOT / "release/smoke.py"],
                clean_environment(folder) | {"PYTHONPATH": ""},
            )
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr

    def test_nothing_but_python_and_its_libraries_is_in_it(self, image: Machine) -> None:
        """No shell, no package manager, no compiler, no test; every module is compiled; to pull it is less than 80 MB."""
        files = [path for path in image.final.rglob("*") if path.is_file() and not path.is_symlink()]
        programs = {path.name for path in files if path.parent.name in ("bin", "sbin")}
        assert {"flagsvc"} < programs and not programs & {
            "sh",
            "bash",
            "dash",
            "busybox",
            "env",
            "apt-get",
            "dpkg",
            "pip",
            "gcc",
            "ldd",
        }
        assert not [path for path in files if {"ensurepip", "idlelib", "tkinter"} & {*path.parts} or path.name.startswith("libtcl")]
        sources = [path for path in files if path.suffix == ".py" and "flagsvc" in path.relative_to(image.final).parts[-4:]]
        assert sources and all(list(path.parent.glob(f"__pycache__/{path.stem}.*.pyc")) for path in sources)
        with tarfile.open(image.root / "image.tar.gz", "w:gz", compresslevel=1) as archive:
            archive.add(image.final)
        size = (image.root / "image.tar.gz").stat().st_size
        print(f"{size / 1e6:.1f} MB")
        assert size < 80_000_000

    def test_its_bill_of_materials_has_every_package(self, image: Machine) -> None:
        """Python's packages, Debian's, whose entries scanners also find, and Python itself; each with its version."""
        found = json.loads((image.final / "usr/share/sbom/flagsvc.cdx.json").read_text())
        names = {part["purl"].rpartition("@")[0] for part in found["components"]}
        packages = {
            re.sub(r"[-_.]+", "-", each.name).lower() for each in Distribution.discover(path=[str(installed(image).parent)])
        }
        assert {f"pkg:pypi/{name}" for name in packages - {"flagsvc"}} == {name for name in names if name.startswith("pkg:pypi/")}
        debian = {path.name for path in (image.final / "var/lib/dpkg/status.d").iterdir()}
        assert names >= {"pkg:generic/python", *(f"pkg:deb/debian/{name}" for name in debian)} and {"libc6", "zlib1g"} <= debian

    @pytest.mark.parametrize("program", ["proxy", "server"])
    def test_it_runs_on_its_root_filesystem_as_somebody_else(self, image: Machine, program: str) -> None:
        """A user without a home runs it, with nothing but the image around. The health check passes, and SIGTERM ends it."""
        [check] = of(FINAL, "HEALTHCHECK")
        inside, port = inside_of(image), free_port()
        with fake_upstream({"features": [{"name": "first", "enabled": True}]}) as upstream, scratch() as folder:
            env = image_environment(image) | proxy_environment(upstream.url, port if program == "proxy" else free_port(), {})
            env |= {"HOME": "/nonexistent", "TMPDIR": "/nonexistent", "XDG_STATE_HOME": "", "PYTHONPATH": ""}
            env |= {
                "FLAGSVC_SERVER_PORT": str(port if program == "server" else free_port()),
                "FLAGSVC_DATABASE_URL": "/state/flags.db",
            }
            probe = [*inside, *json.loads(check.partition("CMD ")[2])[1:]]
            with running("image", [*inside, program], env=env, folder=folder) as ran:
                ran.wait(lambda: answers(f"http://127.0.0.1:{port}/{'proxy/' if program == 'proxy' else ''}health"), "ready")
                done = subprocess.run(probe, env=env, capture_output=True, text=True, timeout=30)
                assert (done.returncode, done.stderr) == (0, "")
                if program == "proxy":
                    ran.wait(lambda: "could not be stored" in ran.output(), "warning of the storage")
                assert ran.stop() == 0
                assert "Traceback" not in ran.output()
            done = subprocess.run(probe, env=env, capture_output=True, text=True, timeout=30)
            assert done.returncode == 1


def inside_of(image: Machine) -> list[str]:
    """Return the command that runs the entry point on the root filesystem; by root, as the user of the image."""
    user = of(FINAL, "USER")[0]
    change = [f"--userspec={user}"] if os.geteuid() == 0 else []
    words = [*([] if change else [needs.program("unshare"), "--map-root-user"]), needs.program("chroot"), *change, str(image.final)]
    entry = image.moved(f"/opt/flagsvc/bin/{json.loads(of(FINAL, 'ENTRYPOINT')[0])[0]}")
    done = subprocess.run([*words, entry, "--version"], capture_output=True, text=True, env={}, timeout=30)
    if "Operation not permitted" in done.stderr:
        needs.missing("no program may change its root folder here")
    assert done.returncode == 0, done.stderr
    return [*words, entry]


def image_environment(image: Machine) -> dict[str, str]:
    """The variables that the image sets."""
    words = shlex.split(" ".join(of(FINAL, "ENV")))
    return {name: image.moved(value) for name, _, value in (word.partition("=") for word in words)}


def test_the_final_stage() -> None:
    """It runs as a numeric user that is not root, needs no shell, listens on 3000, and has a health check."""
    uid, gid = of(FINAL, "USER")[0].split(":")
    assert uid.isdigit() and gid.isdigit() and "0" not in (uid, gid)
    assert of(FINAL, "EXPOSE") == ["3000"]
    assert "PORT=" not in of(FINAL, "ENV")[0]  # this would override the PROXY_PORT of the image's user
    assert json.loads(of(FINAL, "ENTRYPOINT")[0]) == ["flagsvc"]
    assert json.loads(of(FINAL, "CMD")[0]) == ["proxy"]
    assert json.loads(of(FINAL, "HEALTHCHECK")[0].partition("CMD ")[2]) == ["flagsvc", "health", "--any"]
    assert of(FINAL, "RUN") == []
    assert all("--from=build" in text for text in of(FINAL, "COPY"))
    assert "FROM scratch\n" in (ROOT / "Dockerfile").read_text()


def test_what_goes_to_the_builder() -> None:
    """.dockerignore allows exactly the files that the Dockerfile copies."""
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {source for text in of(BUILD, "COPY") for source in text.split()[:-1]}
    assert {name.partition("/")[0] for name in let_through} == copied


def test_the_build_requirements_are_pinned_as_in_development() -> None:
    """The container builds the wheel with the same versions as development."""
    pins = {name: pinned(f"requirements/{name}.txt") for name in ("build", "dev", "runtime")}
    assert pins["build"].items() <= pins["dev"].items()
    assert pins["runtime"].items() <= pins["dev"].items()
    text = (ROOT / "requirements/build.txt").read_text()
    assert text.count("==") <= text.count("--hash=sha256:")


def pinned(path: str) -> dict[str, str]:
    """The versions in a file of requirements by name."""
    return dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / path).read_text(), re.MULTILINE))


def composed(environment: dict[str, str]) -> dict[str, Any]:
    """Return the compose file's seed in an environment; our server accepts it."""
    content = yaml.safe_load((ROOT / "compose.yaml").read_text())["configs"]["seed"]["content"]
    seed = yaml.safe_load(interpolated(content, environment))
    parse_seed(seed)
    return dict(seed)


def interpolated(text: str, environment: dict[str, str]) -> str:
    """Return a text of the compose file with its variables replaced. Raises KeyError for a missing one."""
    return re.sub(r"\$\{(\w+):\?[^}]+\}", lambda found: environment[found[1]], text)


def test_no_server_with_a_token_that_everybody_knows() -> None:
    """Without secrets in the environment nothing starts. The file has no secret, and the port is open on this machine only."""
    with pytest.raises(KeyError, match="FLAG_ADMIN_SECRET"):
        composed({})
    text = (ROOT / "compose.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    assert services["flag-server"]["ports"] == ["127.0.0.1:4242:4242"] and "ports" not in services["database"]
    known = yaml.safe_load((ROOT / "examples/seed.yaml").read_text())["tokens"]
    assert not [token for token in known if token["secret"] in text]


def test_the_base_image_is_named_by_its_digest() -> None:
    """A name can mean another image tomorrow. The final stage begins with nothing."""
    images = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"python:3\.13-slim@sha256:[0-9a-f]{64} scratch", " ".join(images))


def test_the_compose_file() -> None:
    """The proxy of the compose file is built here, read-only, without capabilities, and meets its upstream by its token."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    proxy, server = services["proxy"], services["flag-server"]
    assert proxy["build"] == "." and proxy["read_only"] is True and proxy["cap_drop"] == ["ALL"]
    tokens = composed({"FLAG_ADMIN_SECRET": "a" * 48, "FLAG_UPSTREAM_SECRET": "b" * 48})["tokens"]
    assert tokens == [
        {"type": "personal", "user": "admin", "secret": f"user:{'a' * 48}"},
        {"type": "backend", "secret": f"*:development.{'b' * 48}"},
    ]
    wanted = interpolated(proxy["environment"]["FLAGSVC_API_TOKEN"], {"FLAG_UPSTREAM_SECRET": "b" * 48})
    assert wanted == tokens[1]["secret"]
    [seed] = server["configs"]
    assert server["command"] == ["server"] and seed == {"source": "seed", "target": server["environment"]["FLAGSVC_SEED"]}
    assert server["environment"]["FLAGSVC_SEED_MODE"] == "add", "a changed secret works, and ends no start"
    assert proxy["environment"]["FLAGSVC_URL"] == "http://flag-server:4242/api"
    assert proxy["volumes"] == ["proxy-state:/state"]
    assert "FLAGSVC_STORAGE=file:///state" in of(FINAL, "ENV")[0]
