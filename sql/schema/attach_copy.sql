ATTACH $file AS pruned;
