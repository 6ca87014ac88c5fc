"""What people read: pages and cards, rendered from views that hold only what may be shown."""
