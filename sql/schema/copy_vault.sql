-- Everything that remains, copied to a separate file: removed data stays readable in the free pages of the old one.
COPY FROM DATABASE {{vault}} TO {{copy}};
