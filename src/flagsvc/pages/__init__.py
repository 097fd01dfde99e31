"""What pages are made of: templates, style, scripts, forms, and the headers that keep a page to its own origin.

It knows no flags and no routes. The two products have pages of their own over it.
"""
