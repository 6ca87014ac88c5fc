-- Who is in one release. The columns before the hash in stages/read_exposed are the same for all.
SELECT person AS row_of FROM main.exposed WHERE release = $release;
