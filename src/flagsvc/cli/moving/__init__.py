"""What `flagsvc move` does: looks at two flag servers, says what is to be done, and does it.

`steps` is what is to be done in single requests; `kinds` finds it for strategy types, context fields, tag types and segments,
`people` for users; `looking` does so for flags, and makes the whole plan; `doing` carries it out.
"""
