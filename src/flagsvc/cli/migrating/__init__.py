"""Used by `flagsvc migrate` alone: the configuration of another proxy is read, translated and written.

sources.py          what was given: variables and a command line, from the environment, env files or a compose file
env_files.py        the text of env files, and `${NAME:-default}` in them and in compose files
compose_files.py    the services of a compose file; kubernetes.py: the containers of manifests
migration.py        the result: options, environments and notes; as TOML, as variables, as JSON
edge.py             from Edge's variables; edge_tokens.py: environments and keys
backups.py          a backup of another proxy as our storage

`cli/migrate.py` translates the variables of the reference proxy.
"""
