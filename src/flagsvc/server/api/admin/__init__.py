"""The admin API, one module per noun; each exports `ROUTES`."""
