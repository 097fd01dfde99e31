r"""Naming patterns: JavaScript's regular expressions without flags, searched with a bound (import validation 4.1, rule 5; 10).

`compile_pattern` parses a pattern as JavaScript does, also its older forms (a lone brace, `\q` for `q`, octal escapes). RE2 runs
what it supports, the package `regex` runs the rest. `SearchTime` limits the time of both.

    grammar      the text of a pattern → nodes, with UTF-16 code units and the meaning of escapes
    matching     nodes → the text for an engine, and its search
"""

from flagsvc.server.store.patterns.grammar import InvalidPattern, UncheckedNameError
from flagsvc.server.store.patterns.matching import SearchTime, compile_pattern

__all__ = ["InvalidPattern", "SearchTime", "UncheckedNameError", "compile_pattern"]
