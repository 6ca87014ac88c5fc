DETACH pruned;
