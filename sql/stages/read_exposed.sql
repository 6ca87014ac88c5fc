-- Who is in which release, as it is summed up. A person's hash has 16 bytes, so where it begins is known.
SELECT encode(release) || person AS row_of FROM main.exposed;
