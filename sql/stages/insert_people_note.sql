INSERT INTO main.people_notes VALUES ($note);
