"""The cost of a release, how far one record moves a sum, and the noise scale that follows."""
