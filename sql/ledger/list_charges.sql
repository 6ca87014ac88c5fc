-- Every charge, in the order in which they were made.
SELECT * FROM charges ORDER BY number;
