SELECT note FROM main.people_notes;
