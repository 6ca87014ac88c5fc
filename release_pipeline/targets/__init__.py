"""Where published packages go beside the site's own folder, an API a file."""
