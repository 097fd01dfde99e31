"""Who signs in beside tokens and links: the persons that a proxy in front names, or an OpenID provider (decision 0034).

    ways.py       whom a proxy in front names
    provider.py   asks an OpenID provider; id_token.py checks its token
    attempt.py    what an answer must fit

Which user that is, and which roles groups give: `server/store/resources/identities.py`. Sessions:
`server/store/resources/sessions.py`.
"""
