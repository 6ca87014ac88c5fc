"""`release-pipeline agent`: signs on a person's own machine what a desk asks them to sign, and first shows what it computed.

A desk is a view and a courier. It gives a ticket, and the browser takes that to this program on the same machine. This program
fetches the bundle, which `sign` judges, and hands back what was signed. Keys never leave it, and nothing that a desk or another
page says is believed. It needs the standard library, `sign` and `verify`, and no site.

`origins` are desks as people name them; `desk` asks one; `guard` says which requests of a browser are answered; `peers` who on
this machine sends them; `reviews` is what becomes of a ticket; `markup` and `pages` make what the person sees; `server` listens,
and `options` begins it all.
"""
