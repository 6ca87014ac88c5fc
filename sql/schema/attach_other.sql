ATTACH $file AS other (READ_ONLY);
