"""The utility of a released table, and what it reveals about its people."""
