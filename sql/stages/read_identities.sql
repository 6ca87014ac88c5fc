-- The hashes that identify people, in the form that is summed.
SELECT person || everywhere AS row_of FROM {{table}};
