"""Signs what somebody was asked to review, on a machine of their own, offline.

Its modules are joined into `sign.py`, one file that runs alone.
"""
