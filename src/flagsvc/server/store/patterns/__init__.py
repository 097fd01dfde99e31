r"""Naming patterns: JavaScript's regular expressions without flags, searched with a bound (import validation 4.1, rule 5; 10).

`compile_pattern` parses a pattern as JavaScript does, also its older forms (a lone brace, `\q` for `q`, octal escapes). RE2 runs
what it supports, in linear time. A backtracking search of our own runs the rest: look-around, references to groups, large counts.
Both take steps from a `StepBudget`, and raise `UncheckedNameError` when it is used up.

    characters   UTF-16 code units, and the meaning of escapes    program   nodes → instructions
    nodes        the syntax tree of a pattern                     search    runs instructions on a text, step by step
    grammar      the text of a pattern → nodes                    pattern   nodes → RE2's syntax, or else a search
"""

from flagsvc.server.store.patterns.budget import StepBudget, UncheckedNameError
from flagsvc.server.store.patterns.characters import InvalidPattern
from flagsvc.server.store.patterns.grammar import parse
from flagsvc.server.store.patterns.pattern import Pattern, compile_pattern

__all__ = ["InvalidPattern", "Pattern", "StepBudget", "UncheckedNameError", "compile_pattern", "parse"]
