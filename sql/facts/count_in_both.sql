-- How many people of this population are in the other one that is attached.
SELECT count(DISTINCT everywhere) AS people
FROM main.identities
WHERE everywhere IN (SELECT everywhere FROM "the other".main.identities);
