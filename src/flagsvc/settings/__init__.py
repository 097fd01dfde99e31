"""Settings: a mapping in, a frozen object out, all complaints at once (specification: Configuration).

    options.py   the options table, OPTIONS, and what it makes: ProxyOptions
    load.py      from flags, environment and file to ProxyOptions, each value with where it came from
    render.py    the rows as help, as reference page, as masked dump
    advice.py    values that are valid but probably a mistake
    foreign.py   variables of other programs, and what they are called here

This room reads the files it is pointed at (configuration, secrets), and of the machine what defaults depend on (defaults.py,
processors.py): no network, no global state.
"""
