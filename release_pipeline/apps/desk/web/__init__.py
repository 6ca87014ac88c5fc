"""The desk's pages: an account of its own, which has nothing of the site but what the backend answers to who is logged in."""
