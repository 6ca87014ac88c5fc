"""The backend: the site's account answers the desk's web pages through a socket, and nothing else.

Each module has the calls of one kind of work, each a `Call` with the roles that may make it.
"""
