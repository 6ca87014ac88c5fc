"""Where published packages go besides the site's folder: other folders, and object stores."""
