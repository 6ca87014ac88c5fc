"""What a released table is still good for, and what it tells of its people."""
