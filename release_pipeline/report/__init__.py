"""The page that reviewers decide from, and what it asks of them."""
