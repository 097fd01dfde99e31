"""The form of the package in the tests, compiled modules or Python sources, and the closing lines of a run."""

from __future__ import annotations

import gc
import inspect
import itertools
import os
import re
import sys

import pytest
from hypothesis import settings

from support import forms
from support.aio import asynchronous
from support.same_inputs import forget_literals

COUNTED = {"test_client_specification.py::test_case": "client specification", "test_corpus.py::test_case": "corpus"}
"""Test → what its cases are called."""
LINES_OF_A_FAILURE = 25
PASSED_A_LINE = 1000
"""If the output is a log, one line stands for so many passed tests, so that a shortened log keeps the failures."""

LONGEST_FIRST = (
    "tests/integration/test_container.py",
    "tests/integration/test_server_schemathesis.py",
    "tests/differential_batch/",
    "tests/integration/test_clients_table.py",
    "tests/differential_peers/",
    "tests/differential_reports/",
    "tests/integration/test_server_resources_beside_the_real_one.py",
    "tests/wire/test_options_effect.py",
    "tests/faults/test_server_killed.py",
    "tests/integration/test_server_process.py",
    "tests/integration/test_cli_batch.py",
    "tests/integration/test_server_",
    "tests/faults/",
    "tests/integration/test_",
    "tests/house/test_build",
    "tests/integration/",
    "tests/wire/test_wire_import_cases.py",
    "tests/unit/proxy/configuration/test_machine.py",
    "tests/unit/settings/test_properties.py",
    "tests/property/",
)
"""Paths, or beginnings of paths, of slow test files: they start first, so that all processes end at about the same time."""

DATABASES = ("tests/integration/store/", "tests/integration/server/", "tests/integration/pages/")
"""The tests of single modules on databases. A whole run has them once: on SQLite interpreted, on PostgreSQL compiled."""
PAGES = "tests/integration/pages/"
"""Pages make no SQL. A whole run has them on SQLite alone, except the pages that two people change at once.

So it is with tests of the marker `one_database`: other tests send their SQL to PostgreSQL.
"""
PROGRAMS = {"postgresql_cluster", "postgresql_url", "postgresql_pool"}
"""Fixtures that start a program. What is on one kind of database of several says so by its parameter."""

_passed = itertools.count(1)

pytest_plugins = ("support.databases",)

# A loaded machine is slow, not wrong; and the verdict on a change must not depend on luck: new examples are for by hand.
settings.register_profile("long", deadline=None, derandomize=os.environ.get("CI") == "true", max_examples=100)
settings.register_profile("flagsvc", settings.get_profile("long"), max_examples=50)
settings.register_profile("check", settings.get_profile("long"), max_examples=20)
settings.load_profile("flagsvc")
if settings.default is not None and settings.default.derandomize:
    forget_literals()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the half of a whole run, and for its coverage."""
    parser.addoption("--half", choices=("sources", "compiled"), help="of tests on databases: SQLite, or PostgreSQL")
    parser.addoption("--coverage", metavar="REPORT", help="write which lines and branches of the sources ran")


def pytest_configure(config: pytest.Config) -> None:
    """Put the sources first on the path, and the hook before all other finders where the sources are to be run."""
    if str(forms.SOURCES) not in sys.path:
        sys.path.insert(0, str(forms.SOURCES))
    if forms.interpreted():
        sys.meta_path.insert(0, _sources_only(config))
    elif config.getoption("coverage") is not None:
        raise pytest.UsageError("--coverage counts in the sources: FLAGSVC_INTERPRETED=1")
    outdated = [] if forms.interpreted() else forms.outdated_modules()
    if outdated:
        raise pytest.UsageError(
            f"the compiled form of {', '.join(outdated)} is older than the source: run `make compile`, or {forms.SWITCH}"
        )
    lacking = [name for name, found in forms.compiled_modules().items() if not found]
    if os.environ.get("REQUIRE_ALL") == "1" and lacking and not forms.interpreted():
        raise pytest.UsageError(f"REQUIRE_ALL=1 and these modules are not compiled: {', '.join(lacking)}")


def _sources_only(config: pytest.Config) -> forms.InterpretedOnly:
    """Return the hook that insists on the sources; with `--coverage` they count what runs."""
    report = config.getoption("coverage")
    if report is None:
        return forms.InterpretedOnly("flagsvc", forms.SOURCES)
    from support.covering import Covering

    covering = Covering("flagsvc", forms.SOURCES, config.rootpath / report)
    config.pluginmanager.register(covering)
    return covering


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that ask for a database server, leave out what the second half runs, and put the longest files first."""
    for item in items:
        if PROGRAMS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.programs)
    others = [item for item in items if _is_of_other_half(item, config.getoption("half"))]
    if others:
        config.hook.pytest_deselected(items=others)
    left = set(others)
    items[:] = sorted((item for item in items if item not in left), key=lambda item: _place(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an asynchronous test in an event loop of its own, bounded in time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asynchronous(pyfuncitem.obj)(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters})
    return True


def _is_of_other_half(item: pytest.Item, half: str | None) -> bool:
    """Return whether a test on a database is left to the other half of a whole run: each runs in one of them."""
    if half is None or not item.nodeid.startswith(DATABASES):
        return False
    on_one = item.nodeid.startswith(PAGES) and "concurrent" not in item.nodeid
    if "[postgresql" in item.nodeid and (on_one or item.get_closest_marker("one_database") is not None):
        return True
    return (half == "sources") is (item.get_closest_marker("programs") is not None)


def _place(test: str) -> int:
    """Return how early a test is to start: its place in `LONGEST_FIRST`, the end of it for a test of no file there."""
    return next((place for place, file in enumerate(LONGEST_FIRST) if test.startswith(file)), len(LONGEST_FIRST))


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: what they make stays."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was collected to no garbage collection any more, and collect seldom: each saves a tenth of the time of the tests.

    Check that the hook did its work: an interpreted run has imported nothing that is compiled.
    """
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    if forms.interpreted() and forms.loaded_compiled():
        raise pytest.UsageError(f"asked for the sources, but these are compiled: {', '.join(forms.loaded_compiled())}")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Say which form runs; the usual header is left out of quiet runs."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(session.config, "workerinput"):
        reporter.write_line(f"flagsvc runs {forms.form()}")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a case of bytes that are no text by their length: compressed ones may hold the time, and workers must agree."""
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes) and not val.isascii() else None


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Print no dot for a passed test if the output is not a terminal."""
    return ("passed", "", "") if _passed_unseen(report) else None


def _passed_unseen(report: pytest.TestReport) -> bool:
    return report.passed and report.when == "call" and not sys.stdout.isatty()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Report a failure when it happens: a reader may never see the end of a long log."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    if report.failed:
        last = "\n".join(report.longreprtext.splitlines()[-LINES_OF_A_FAILURE:])
        print(f"\n{report.when} of {report.nodeid} failed:\n{last}", flush=True)
    elif _passed_unseen(report) and (number := next(_passed)) % PASSED_A_LINE == 0:
        print(f"{number} passed", flush=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many cases of each counted suite passed in which form of the package, and what tests recorded as summary."""
    for test, title in COUNTED.items():
        passed = _count(terminalreporter, "passed", test)
        others = {outcome: _count(terminalreporter, outcome, test) for outcome in ("failed", "skipped", "error")}
        rest = "".join(f", {number} {outcome}" for outcome, number in others.items() if number)
        if passed or rest:
            terminalreporter.write_line(f"{title}: {passed} cases passed{rest}; flagsvc {forms.form()}")

    for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", []):
        for name, value in getattr(report, "user_properties", ()):
            if name == "summary":
                terminalreporter.write_line(f"{report.nodeid.partition('::')[0]}: {value}")


def _count(reporter: pytest.TerminalReporter, outcome: str, test: str) -> int:
    inside = re.compile(rf"(^|/){re.escape(test)}(\[|$)")
    return sum(1 for report in reporter.stats.get(outcome, ()) if inside.search(getattr(report, "nodeid", "")))
