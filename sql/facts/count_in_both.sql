-- How many people of this population are also in the attached one.
SELECT count(DISTINCT everywhere) AS people
FROM main.identities
WHERE everywhere IN (SELECT everywhere FROM "the other".main.identities);
