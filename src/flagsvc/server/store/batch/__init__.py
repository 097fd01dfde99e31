"""Batch validation, import and export of features (import validation 4; 5; 6; 7).

A rule is a row of `RULES` in `rules.py`: what a validation says, and what an import raises before its first write. The steps of an
import check the rest, in the real server's order; the rows of `problems` find that for commands. A rule sees a
`CheckedDataSet` of `facts.py`: `importing.py` reads its facts from the database, `cli/batch/checking.py` from another server.

Copies between environments are imports (decision 0028): `make_copies` in `planning.py` makes them, `carry_out` does or tries them,
and `find_differing` in `differences.py` finds what differs.
"""
