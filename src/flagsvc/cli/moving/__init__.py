"""The parts of `flagsvc move`: it compares two flag servers, makes a plan, and executes it.

`steps` defines single requests; `resources` plans them for strategy types, context fields, tag types and segments, and `users`
for users. `planning` plans the flags and makes the whole plan; `execution` executes it.
"""
