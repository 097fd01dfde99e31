"""A backup of the whole database as a file, and its restore into a database of either kind (decision 0031).

lines.py      the form of the file; values.py: what each column may hold
tables.py     the tables as the database has them, and writing
restoring.py  restores them
"""
