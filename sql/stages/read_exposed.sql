-- Who is in which release, in the form that is summed. A person's hash has 16 bytes, so its start is known.
SELECT encode(release) || person AS row_of FROM main.exposed;
