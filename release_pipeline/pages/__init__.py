"""Pages and cards for people, rendered from views that hold only what may be shown."""
