ATTACH $file AS {{copy}};
