"""What people take away to sign, and what waits for the privacy officer."""
