"""What the figures say, a paper a file: its claims judged, its pictures and tables; and the page that shows them."""
