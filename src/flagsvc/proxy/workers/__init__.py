"""Several processes on one port: the parent keeps the configuration and the counts, the workers answer requests.

    parent: WorkerPool ── socket pair ── ParentLink: worker     documents and switches go down, counts and requests come up

`messages` is pure, `channel` is one end of a socket pair, `metric_sums` adds up the workers' metrics
(decision 0023).
"""
