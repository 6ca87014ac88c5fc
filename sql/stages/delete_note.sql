DELETE FROM notes WHERE stage = $stage;
