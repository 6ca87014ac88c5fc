"""What a site tells of itself: its budgets, the states of its releases, and both on a page."""
