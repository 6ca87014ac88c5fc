-- Everything that is left, into a file of its own: what was removed from the old one stays readable in its free pages.
COPY FROM DATABASE {{vault}} TO {{copy}};
