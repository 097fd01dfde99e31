"""The life of a proxy's options: from a set of options to what answers callers, and from there to the next set (decision 0014).

setup.py        what follows from a set of options without an event loop, for the process and for each environment
feeds.py        the upstream side of an environment: polls, stores, reports
lookups.py      what asks the upstreams about tokens of callers
environment.py  one environment as callers meet it: its setup, its feed and its service
admission.py    which environment a looked-up token opens
generation.py   which environments answer, and how the next generation takes their places

From SIGHUP to the first answer with new keys: `Reloader` in `process/reload.py` reads the options and keeps former keys for
`keyOverlap`. `next_setup` in `setup.py` makes a `ProxySetup` of them. `Generations.use` keeps the feed of each environment whose
upstream side is the same (`what_decides_the_side`), makes the next `Generation` and points to it. An environment with another side
follows with its first configuration. With workers the parent does the same, and `ParentProcess.tell_workers` in
`process/serve_workers.py` sends each worker the environments. `ToldGenerations` in `process/worker.py` makes a generation there.
The feed is an `UpstreamSync`, in the parent of workers a `ParentFeed`, in a worker a `WorkerFeed`.
"""
