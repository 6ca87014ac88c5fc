ATTACH $file AS "the other" (READ_ONLY);
