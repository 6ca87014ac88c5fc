SELECT note FROM notes WHERE stage = $stage;
