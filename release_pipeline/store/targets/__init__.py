"""Where published packages go beside the site's own folder: object stores, folders, and archives with an API."""
