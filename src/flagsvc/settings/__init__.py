"""Settings: a mapping in, a frozen object out, all problems at once (specification: Configuration).

    rows/        every option, one row each, a class for each section of the help
    option.py    the columns of a row
    kinds.py     the kinds of value; more of them: network.py, headers.py, storage.py
    table.py     the tables that are read off the rows: OPTIONS, SERVER_OPTIONS
    options.py   ProxyOptions; server.py: ServerOptions; base.py: what both inherit, and types in code
    load.py      from flags, environment and file to options, each value with its source; normalise.py: defaults and problems
    render.py    the rows as help, as reference page, as masked dump
    advice.py    values that are valid but probably a mistake
    environments.py the options of several environments, and which of them have the same upstream
    tokens.py    what a token of a flag server says of itself
    unread.py    variables with our prefix that no option reads: what was probably meant
    edge.py      the variables of Unleash Edge, real_server.py those of a real server, one row each, and what the
                 flag server takes from them

A new option needs a row, and the code that reads it. This package reads the files that options name (configuration, secrets). It
also reads what defaults depend on (defaults.py, core/control_groups.py). It uses no network and no global state.
"""
