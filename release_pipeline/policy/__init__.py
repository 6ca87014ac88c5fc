"""The policy file: model, loader that reports all errors at once, and the plan that `check` prints."""

from release_pipeline.policy.load import load_policy, parse_policy
from release_pipeline.policy.model import Policy

__all__ = ["Policy", "load_policy", "parse_policy"]
