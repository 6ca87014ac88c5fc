"""What a released table reveals to somebody who knows other things about its people."""
