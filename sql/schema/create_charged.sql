-- The releases of this population that were charged and got as far as clusters; people: whether main.exposed has who is in them.
CREATE TABLE IF NOT EXISTS main.charged (release VARCHAR NOT NULL, people BOOLEAN NOT NULL);
