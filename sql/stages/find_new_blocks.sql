-- The current block of everybody whom the vault knows from a policy. People who are not in this release stay with those of their
-- earlier block: the majority decides.
WITH
owner AS (
    SELECT
        person,
        row_number() OVER (ORDER BY rowid) AS place,  -- rows of this transaction have numbers of another kind
        row_number() OVER (PARTITION BY person ORDER BY rowid) AS nth
    FROM {{owners}}
),
now AS (
    SELECT owner.person, owner.nth, blocks.block
    FROM owner
    JOIN (SELECT {{block}} AS block, row_number() OVER (ORDER BY rowid) AS place FROM {{blocks}}) AS blocks ON owner.place = blocks.place
    WHERE blocks.block >= 0
),
earlier AS (SELECT person, nth, block FROM main.swapped WHERE policy = $policy),
met AS (
    SELECT earlier.block AS was, now.block AS is_now, count(*) AS often
    FROM now
    JOIN earlier ON now.person = earlier.person AND now.nth = earlier.nth
    GROUP BY ALL
),
moved AS (SELECT was, arg_max(is_now, (often, -is_now)) AS is_now FROM met GROUP BY was)
SELECT $policy AS policy, person, nth::INTEGER AS nth, block FROM now
UNION ALL
SELECT
    $policy,
    earlier.person,
    earlier.nth,
    coalesce(moved.is_now, (SELECT coalesce(max(block), -1) + 1 FROM now) + earlier.block)
FROM earlier
LEFT JOIN moved ON earlier.block = moved.was
ANTI JOIN now ON earlier.person = now.person AND earlier.nth = now.nth;
