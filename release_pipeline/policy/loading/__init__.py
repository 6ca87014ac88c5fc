"""From the text of a file to a `Policy`, or to all of its errors at once."""
