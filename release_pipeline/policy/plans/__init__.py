"""What a policy will do and cost, before any data is touched."""
