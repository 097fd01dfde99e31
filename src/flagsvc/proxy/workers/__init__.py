"""Several processes on one port: the parent keeps the configuration and the counts, the workers answer.

    parent: Crew ── socket pair ── Link: worker     documents and switches go down, counts and questions come up

`framing` and `messages` are pure, `channel` is one end of a socket pair, `sums` adds up what workers count
(decision 0023).
"""
