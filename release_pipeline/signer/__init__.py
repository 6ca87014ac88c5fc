"""Signs what somebody was asked to review, on their own machine, offline.

Its modules are joined into `sign.py`, one file that runs alone.
"""
