"""The life of a proxy's options: from a set of options to what answers callers, and from there to the next set (decision 0069).

setup.py        what follows from a set of options without an event loop, for the process and for each environment
feeds.py        the upstream side of an environment: polls, stores, reports
lookups.py      what asks the upstreams about tokens of callers
environment.py  one environment as callers meet it: its setup, its feed and its service
admission.py    which environment a looked-up token opens
generation.py   which environments answer, and how the next generation takes their places
"""
