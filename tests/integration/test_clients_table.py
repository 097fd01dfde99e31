"""Real clients against our proxy: each client of the family through each column of one table.

The clients are unmodified packages of the registries. They run beside each other, on one proxy, while its upstream changes, refuses
and goes away. The table is printed at the end of the run, and written to `.cache/clients-table.md`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support import needs, processes
from support.clients_columns import COLUMNS, Column, evaluate, nothing_lost, refused_upstream, start
from support.clients_edge import about
from support.clients_scene import ROWS
from support.clients_table import Table, fill

WRITTEN = processes.ROOT / ".cache" / "clients-table.md"
MINUTE_S = 60.0


@pytest.fixture(scope="module")
def table() -> Table:
    """Give the filled table."""
    return fill()


@pytest.mark.parametrize("column", [column.title for column in COLUMNS])
@pytest.mark.parametrize("row", [row.id for row in ROWS])
def test_cell(table: Table, row: str, column: str) -> None:
    """The client does what the column asks for (`support.clients_columns` says what)."""
    cell = table.cells[row, column]
    if cell.missing:
        needs.missing(cell.missing)
    assert not cell.wrong, cell.wrong


def test_the_table_is_written(table: Table, record_property: Callable[[str, object], None]) -> None:
    """A reader finds the table in a file and at the end of the run: a line for each client."""
    WRITTEN.parent.mkdir(exist_ok=True)
    WRITTEN.write_text(table.page())
    record_property("summary", "\n".join(["", *table.lines(), about()]))
    assert len(table.lines()) == len(ROWS) + 2
    assert all(f"| {row.package} | {row.how} |" in WRITTEN.read_text() for row in table.rows)


@pytest.mark.long
def test_a_minute_of_refusals() -> None:
    """No client loses a flag, or stops asking, while the upstream refuses the proxy's token for a minute."""
    columns = (
        Column("start", start),
        Column("evaluate", evaluate),
        Column("change after upstream 401", refused_upstream),
        Column("no flag lost", nothing_lost),
    )
    table = fill(columns, refusal_s=MINUTE_S)
    assert {key: cell.wrong for key, cell in table.cells.items() if cell.wrong} == {}
