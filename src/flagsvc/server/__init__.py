"""The flag server: flags in a database, an admin API, and the documents that proxies and SDKs ask for.

    application.py   the one place that puts a flag server together; `Cleanup` deletes old events
    start.py         what a start creates in a new database, and prints
    api/             the admin API and the client API
    pages/           the pages, over the same functions
    store/           the database: one transaction for each change
    webhooks/        what is sent when a flag changes
    sign_in/         persons that a proxy in front or an OpenID provider names

A change: request → `Pipeline` → handler → one transaction → commit, revision + 1. A read of a proxy: token → `Documents` of that
revision, in memory → bytes.
"""
