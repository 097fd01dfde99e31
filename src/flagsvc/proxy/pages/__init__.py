"""The proxy's pages for operators, at `adminAddress` below /ui. They change nothing.

`desk` is the contract: which request is for a page, who may see it, and the answer. All of it runs in the
event loop that answers callers, in slices of half a millisecond (`Slices`): compiled code does not release the interpreter's lock,
so a thread would make callers wait longer, and custom code is called in the thread that it knows.

- What answers at the operators' address: `make_desk` puts it together. `PagesContract` answers below /ui, and the `Service` of
  `make_admin_address_service` all else. `Access` in `access.py` decides who may see a page.
- A page: `make_rows` in `desk.py` lists every `PageRow`, with its path, its template in `templates/` and the function that makes
  its data. `Scene` in `page.py` is what they show. `UnfoldedConfigurations` in `unfolding.py` keeps titles and nodes for a minute.
- The requests of the last hour: `Recorder` in `traffic.py` reads the counters, also while no page is open.
"""
