"""The desk's pages. Their account has only the backend's answers to people who are logged in, and nothing else of the site."""
