"""The parts of `flagsvc move`: it compares two flag servers, makes a plan, and executes it.

`resources` plans single requests, for strategy types, context fields, tag types, segments and users. `planning` plans the flags,
splits them into requests, and makes the whole plan. `checking` finds what the other server would refuse.
"""
