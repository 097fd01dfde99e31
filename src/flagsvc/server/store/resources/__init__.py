"""One module for each noun of the admin API: plain functions over one transaction."""
