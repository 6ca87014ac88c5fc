"""The desk's pages. Their account has nothing of the site except the backend's answers to people who are logged in."""
