"""Checks a published package or an auditor's dossier, offline, with only Python's standard library.

Its modules are joined into `verify.py`, the one file that strangers run.
"""

from release_pipeline.verifier.command import examine, verify_path
from release_pipeline.verifier.documents import Fault, WrongUsage
from release_pipeline.verifier.findings import Finding, Verification

__all__ = ["Fault", "Finding", "Verification", "WrongUsage", "examine", "verify_path"]
