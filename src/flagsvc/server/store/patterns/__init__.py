r"""Naming patterns: JavaScript's regular expressions without flags, searched with a bound (import validation 4.1, rule 5; 10).

`compile_pattern` reads a pattern as JavaScript does, older forms included (a lone brace, `\q` for `q`, octal escapes). What RE2 can
run runs there, in linear time; what it cannot (look-around, references to groups, large counts) goes to a search of our own that
goes back and tries again. Both take steps from a `StepBudget`, and end with `Unchecked` where it does not suffice.

    units     characters as JavaScript counts them     linear    nodes → RE2's syntax
    nodes     what a pattern consists of               program   nodes → instructions
    escapes   what a backslash means                   search    instructions and a text → whether it is found, step by step
    grammar   the text of a pattern → nodes            pattern   which of the two is asked
"""

from flagsvc.server.store.patterns.budget import StepBudget, Unchecked
from flagsvc.server.store.patterns.pattern import Pattern, compile_pattern

__all__ = ["Pattern", "StepBudget", "Unchecked", "compile_pattern"]
