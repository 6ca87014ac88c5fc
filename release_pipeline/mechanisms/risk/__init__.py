"""What a released table lets somebody find out who knows other things about its people."""
