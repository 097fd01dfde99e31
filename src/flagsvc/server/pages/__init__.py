"""The pages of the flag server, below `/ui`: a module for each noun, over the same functions and permissions as the admin API.

Every handler returns the data of its page; its template makes the page of it. So the address with `.json` at its end has the same.

    page.py       the frame of every page, redirects, the page of an error; `page` and `change` make routes
    resource.py   `Resource`: one flow for all nouns that are listed, made, changed and deleted

- A form changes something: its route names in `stands_for` the operation of the admin API that it does, and takes from it who may.
  `edits.py` has the digest of what a form was made from, so that no change is overwritten unseen.
- The list of flags is `flags.py`. `flag_search.py` reads what is typed into its search, `flag_view.py` which environments somebody
  sees, and `flag_bulk.py` changes the flags that are ticked.
- Contexts are tried: `tryout.py`. Who gets a flag and who loses it: `strategy_preview.py`, over `impact_of`.
- Flags of two environments: `compare.py` and `copy_flag.py`, with `plans.py`, which all pages that import share (decision 0028).
- A flag is created in `flag_new.py`, with its first strategy if wanted. Its page is in `flag.py`, the picture of its use in
  `flag_use.py`, and the code for SDKs in `flag_snippets.py`.
- What begins and what is found: `first_steps.py` on the list, `palette.py` with the script of its dialog, `favourites.py`.
- A change is offered for undo, and pages tell at which proxies it has arrived: `notices.py`.
- Who is signed in: `sign_in.py` sets the cookie.
"""
