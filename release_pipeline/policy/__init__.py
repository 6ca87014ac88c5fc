"""The policy file: model, loader that reports all errors at once, and the plan that `check` prints."""

from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.loading.load import load_policy, parse_policy

__all__ = ["Policy", "load_policy", "parse_policy"]
