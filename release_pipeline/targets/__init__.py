"""The targets of published packages besides the site's folder: other folders, and object stores."""
