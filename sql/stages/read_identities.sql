-- By which hashes people are found, as it is summed up.
SELECT person || everywhere AS row_of FROM {{table}};
