"""What parts of a policy must agree on."""
