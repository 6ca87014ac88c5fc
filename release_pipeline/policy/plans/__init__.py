"""The effects and costs of a policy, before any data are read."""
