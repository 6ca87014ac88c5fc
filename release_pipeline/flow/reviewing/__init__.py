"""What reviewers are told of a candidate, or of a release that gates stopped: the page that they decide from."""
