"""The page that reviewers decide from, with its questions."""
