"""A backup of the whole database as a file, and its restore into a database of either kind (decision 0059)."""
