"""The counter: what the site's account answers to the desk's web pages, through a socket, and to nobody else.

Each question is a `Call` with the roles that may ask it. A module for each kind of work has those of its pages.
"""
