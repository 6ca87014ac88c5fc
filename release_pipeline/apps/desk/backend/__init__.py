"""The backend: what the site's account answers to the desk's web pages, through a socket, and to nobody else.

Each module has the calls of one kind of work, each a `Call` with the roles that may make it.
"""
