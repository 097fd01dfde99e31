"""What `flagsvc validate`, `import`, `export` and `move` share: the admin API of a flag server as a person meets it.

`target` says which server, project and environment; `client` asks it and `refusals` says in a line what a refusal means;
`files` reads and writes data sets, `yamls` is the YAML they may be in, `places` finds an item of them by name;
`changes` compares two data sets; `tables` shows all of it, `consent` asks whether to go on; `order` asks for the order of
strategies; `pieces` splits a data set into requests that a server takes.
"""
