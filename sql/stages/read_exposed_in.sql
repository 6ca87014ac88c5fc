-- Who is in one release. What stands before them in stages/read_exposed is the same of all.
SELECT person AS row_of FROM main.exposed WHERE release = $release;
