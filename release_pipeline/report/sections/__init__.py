"""The sections of the internal report: for each picture what it shows, how to read it, what would be a bad sign, and what it
says of the very figures of a release."""
