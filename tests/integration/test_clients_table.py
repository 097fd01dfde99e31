"""Real clients against our proxy: each client of the family through each column of one table.

The clients are unmodified packages of the registries. They run beside each other, on one proxy, while its upstream changes, refuses
and goes away. The table is printed at the end of the run, and written to `.cache/clients-table.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from support import needs, processes
from support.clients import Row
from support.clients_columns import COLUMNS, Column, evaluate, nothing_lost, refused_upstream, start
from support.clients_edge import about
from support.clients_scene import ROWS, Cell, Cells, Scene, clients_scene


@dataclass
class Table:
    """The cells by row and column."""

    rows: Sequence[Row]
    columns: Sequence[Column]
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)

    def enter(self, column: str, cells: Cells) -> None:
        """Enter the cells of a column, where there is none yet."""
        for row, cell in cells.items():
            self.cells.setdefault((row, column), cell)

    def lines(self) -> list[str]:
        """Return the table as lines of Markdown."""
        titles = [column.title for column in self.columns]
        head = ["client", "how", *titles]
        body = [[row.package, row.how, *(self.cells[row.id, title].text for title in titles)] for row in self.rows]
        return [line(head), line(["---"] * len(head)), *map(line, body)]

    def page(self) -> str:
        """Return the table as a page, with what each column means."""
        meanings = [f"- {column.title}: {column.look.__doc__}" for column in self.columns]
        return "\n".join(["# Real clients against flagsvc proxy", "", *self.lines(), "", about(), "", *meanings, ""])


def line(cells: Iterable[str]) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(cells)} |"


def fill(columns: Sequence[Column] = COLUMNS, refusal_s: float = 0.0) -> Table:
    """Run all clients through all columns."""
    table = Table(ROWS, columns)
    with clients_scene(refusal_s=refusal_s) as (scene, left_out):
        for column in columns:
            table.enter(column.title, left_out)
            table.enter(column.title, look(column, scene))
            lost = {client.row.id for client in scene.clients if table.cells[client.row.id, column.title].wrong}
            left_out |= {row: Cell("–", f"it failed in the column `{column.title}`") for row in lost}
            scene.clients = [client for client in scene.clients if client.row.id not in lost]
    return table


def look(column: Column, scene: Scene) -> Cells:
    """Return the cells of a column. If nothing could be looked at, every cell says why."""
    try:
        return column.look(scene)
    except AssertionError as error:
        return {client.row.id: Cell("no", str(error)) for client in scene.clients}


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
