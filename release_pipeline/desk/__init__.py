"""The desk: where stewards, reviewers, officers, auditors and operators work, in a browser.

It is a view and a courier, and never an authority: people sign on machines of their own. Two processes: `backend` runs on the
account that owns the site, answers a short list of questions through a socket, and knows who may ask what; `web` runs on an
account of its own, faces browsers, and has nothing but what the backend hands out to the people who are logged in.
"""
