-- How many people are in populations of both lists.
SELECT count(*) AS people
FROM (
    SELECT id FROM everybody GROUP BY id
    HAVING bool_or(list_contains($some, population)) AND bool_or(list_contains($others, population))
);
