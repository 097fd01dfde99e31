"""The pages of the flag server, below `/ui`: a module for each noun, over the same functions and permissions as the admin API.

Every handler returns the data of its page; its template makes the page of it. So the address with `.json` at its end has the same.
"""
