"""The way of one release from its source to the candidate."""
