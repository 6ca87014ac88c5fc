"""The sections of the reviewers' page, by what they are about."""
