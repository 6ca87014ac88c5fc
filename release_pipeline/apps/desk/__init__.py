"""The desk: where stewards, reviewers, officers, auditors and operators work, in a browser.

It shows, and carries what people signed on machines of their own; it decides nothing. It has two processes. `backend` runs on
the account that owns the site, answers a short list of questions through a socket, and knows who may ask what. `web` runs on an
account of its own, faces browsers, and has nothing but what the backend gives to the people who are logged in.
"""
