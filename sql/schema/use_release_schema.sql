USE {{room}};
