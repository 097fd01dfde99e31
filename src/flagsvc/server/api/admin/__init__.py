"""The admin API, one module for each kind of object. Each exports `ROUTES`."""
