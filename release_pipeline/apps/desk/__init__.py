"""The desk: where stewards, reviewers, officers, auditors and operators work, in a browser.

It shows things, and carries statements that people signed on their own machines; it decides nothing. It has two processes.
`backend` runs on the account that owns the site, answers a short list of calls through a socket, and knows who may make which.
`web` runs on a separate account, faces browsers, and has only the backend's answers to the people who are logged in.
"""
