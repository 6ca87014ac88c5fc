USE {{workspace}};
