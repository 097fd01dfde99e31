"""Shared by `flagsvc validate`, `import`, `export`, `move` and `flags`: a client of a flag server's admin API, and its output.

`target` reads the server's address and token; `client` sends requests, and `server_errors` explains errors in one line. `files`
reads and writes data sets, `yaml_files` their YAML. `changes` compares two data sets, `tables` prints results.
"""
