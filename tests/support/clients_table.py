"""Fills the table of clients, column by column, and writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from support.clients import Row
from support.clients_columns import COLUMNS, Column
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
