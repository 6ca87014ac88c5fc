-- Counts about one numeric column, never a value. $low, $high, $step: the declared domain and grid; $fill: for what is missing;
-- $codes, $texts: entries that are no value. Outside is what the grid does not bring back to the ends of the domain. Repeats are
-- counted on what would be masked: filled, clamped and on the grid; of one of $parts parts of these numbers.
WITH read AS (
    SELECT
        {{missing}} AS missing,
        {{number}} AS number,
        len($codes) > 0 AND coalesce(list_contains($codes, {{number}}), false)
            OR len($texts) > 0 AND coalesce(list_contains($texts, {{entry}}), false) AS coded
    FROM raw
),
numbers AS (
    SELECT missing, coded, CASE WHEN coded THEN NULL ELSE number END AS number FROM read
),
repeats AS (
    SELECT max(times) AS most_frequent, count(*) AS different
    FROM (
        SELECT count(*) AS times
        FROM (
            SELECT round((least(greatest(filled, $low), $high) - $low) / $step) AS unit
            FROM (SELECT CASE WHEN missing THEN $fill ELSE number END AS filled FROM numbers)
            WHERE isfinite(filled)
        )
        WHERE $parts = 1 OR hash(unit) % $parts = $part
        GROUP BY unit
    )
)
SELECT
    count(*) FILTER (WHERE missing AND NOT coded)               AS missing,
    count(*) FILTER (WHERE coded)                               AS coded,
    count(*) FILTER (WHERE NOT missing AND NOT coded AND number IS NULL) AS not_a_number,
    count(*) FILTER (WHERE NOT isfinite(number))                AS not_finite,
    count(*) FILTER (WHERE isfinite(number) AND number < $low - $step / 2)  AS below,
    count(*) FILTER (WHERE isfinite(number) AND number > $high + $step / 2) AS above,
    coalesce((SELECT most_frequent FROM repeats), 0)            AS most_frequent,
    (SELECT different FROM repeats)                             AS different
FROM numbers;
