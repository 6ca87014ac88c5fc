INSERT INTO notes VALUES ($stage, $note);
