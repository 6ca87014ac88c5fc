DELETE FROM main.people_notes;
