-- The block of each record's person in earlier releases of a policy; -1 if in none.
WITH owner AS (
    SELECT person, rowid AS place, row_number() OVER (PARTITION BY person ORDER BY rowid) AS nth
    FROM {{owners}}
)
SELECT coalesce(earlier.block, -1) AS block
FROM owner
LEFT JOIN main.swapped AS earlier
    ON earlier.policy = $policy AND owner.person = earlier.person AND owner.nth = earlier.nth
ORDER BY owner.place;
