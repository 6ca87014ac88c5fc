INSERT INTO main.charged VALUES ($release, $people);
