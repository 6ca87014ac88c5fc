"""The stages of one release from its source to the candidate."""
