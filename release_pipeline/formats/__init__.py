"""One frozen type for each document that is stored or published."""
