"""Signs the subject of a review on the reviewer's own machine, offline.

Its modules are joined into `sign.py`, one self-contained file.
"""
