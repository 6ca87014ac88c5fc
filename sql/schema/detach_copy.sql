DETACH {{copy}};
