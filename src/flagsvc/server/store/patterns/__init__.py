r"""Naming patterns: JavaScript's regular expressions without flags, searched with a bound (import validation 4.1, rule 5; 10).

`compile_pattern` parses a pattern as JavaScript does, also its older forms (a lone brace, `\q` for `q`, octal escapes). RE2 runs
what it supports, in linear time. A backtracking search of our own runs the rest: look-around, references to groups, large counts.
Both take steps from a `StepBudget`, and raise `UncheckedNameError` when it is used up.

    units     characters as JavaScript counts them     linear    nodes → RE2's syntax
    nodes     the syntax tree of a pattern             program   nodes → instructions
    escapes   the meaning of escapes                   search    runs instructions on a text, step by step
    grammar   the text of a pattern → nodes            pattern   chooses between the two
"""

from flagsvc.server.store.patterns.budget import StepBudget, UncheckedNameError
from flagsvc.server.store.patterns.escapes import InvalidPattern
from flagsvc.server.store.patterns.grammar import parse
from flagsvc.server.store.patterns.pattern import Pattern, compile_pattern

__all__ = ["InvalidPattern", "Pattern", "StepBudget", "UncheckedNameError", "compile_pattern", "parse"]
