SELECT number, hash FROM head;
