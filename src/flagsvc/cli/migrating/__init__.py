"""Used by `flagsvc migrate` alone: the configuration of another proxy is read, translated and written.

sources.py          what was given: variables and a command line, from the environment, env files or a compose file
env_files.py        the text of env files, and `${NAME:-default}` in them and in compose files
compose_files.py    the services of a compose file
edge_commands.py    the command line of Unleash Edge as its variables
migration.py        the result: options, environments and notes
edge.py             from Edge's variables; edge_tokens.py: environments and keys; edge_storage.py: Redis and folders
reference.py        from the variables of the reference proxy
writing.py          the result as TOML, as variables, as JSON
backups.py          a backup of another proxy as our storage
"""
