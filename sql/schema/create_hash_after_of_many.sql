-- As in create_hash_after_of_few, by the function that is registered for many rows.
CREATE OR REPLACE TEMP MACRO hash_after(beginning, row_of) AS hash_many_after(beginning, row_of);
