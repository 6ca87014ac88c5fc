-- The block that each record's person was in, in the last release of a policy; -1 of who was in none. Of several records of one
-- person each has its own.
WITH
earlier AS (
    SELECT person, block, row_number() OVER (PARTITION BY person ORDER BY rowid) AS nth
    FROM main.swapped
    WHERE starts_with(release, $beginning)
),
owner AS (
    SELECT person, rowid AS place, row_number() OVER (PARTITION BY person ORDER BY rowid) AS nth
    FROM {{owners}}
)
SELECT coalesce(earlier.block, -1) AS block
FROM owner
LEFT JOIN earlier ON owner.person = earlier.person AND owner.nth = earlier.nth
ORDER BY owner.place;
