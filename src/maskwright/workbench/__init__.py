"""The workbench: a local web application for the whole journey from a table to a release that was given out.

    serve.py      `maskwright ui`: the address, the token, the server with its limits; the application put together
    security.py   who may call: Host, Origin, token, session, CSRF; bounded bodies; headers of every answer
    api/          the JSON API: everything that changes something
    pages.py      the pages: everything that is only looked at
    workspace.py  projects and the register, as files; roots.py says which files may be opened by path
    jobs.py       runs as processes of their own, with their state on disk; worker.py is what they execute
    turns.py      how many runs go on at a time, and how many wait
    columns.py    the values of columns that are coarsened; of others none are kept
    forms.py      forms for models and methods, from their own fields and docstrings; what they do to a policy
    hierarchy_editor.py  previews of hierarchies, and trees as indented text

Nothing here is imported unless `maskwright ui` is called.
"""
