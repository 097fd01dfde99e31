"""What pages are made of: templates, style, scripts, forms, cookies, and the headers that keep a page to its own origin.

`site` makes a page or its data, the page of an error, a redirect and a file. This package knows no flags and no routes. Each
product has its own pages over it, decides who may see them, and calls them: the flag server in threads, the proxy in slices.

- An open page learns of a change: `EventStreams` in `live.py` tells every open stream, and `static/pages.js` asks for the live
  parts of its page again.
- Numbers are drawn: `charts.py` has the arithmetic of bars, and `templates/charts.html` the drawing with its scale and its axis.
- A moment is read in words: `in_words` in `times.py`, and `static/pages.js` in local time.
- A form comes from our own pages: `is_own_request` in `headers.py` decides that.
"""
