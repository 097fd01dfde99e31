"""Several processes on one port: the parent keeps the configuration and the counts, the workers answer requests.

    parent: WorkerPool ── socket pair ── ParentLink: worker     documents and switches go down, counts and requests come up

`messages` is pure, `channel` is one end of a socket pair, `metric_sums` adds up the workers' metrics
(decision 0018).

- A new configuration: `DocumentDistribution` sends it; all workers prepare it and say so, then all switch. `link` is the side of
  the worker.
- A worker that hangs: `WorkerHeartbeat` in `pool.py` kills it after `workerTimeout`, and the pool starts another one.
"""
