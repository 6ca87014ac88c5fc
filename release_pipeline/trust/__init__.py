"""The signatures that count: keys, members, approvals, remarks."""
