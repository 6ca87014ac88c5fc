-- Counts about one numeric column, never a value; a row represents `times` records. $low, $high, $step: the declared domain and
-- grid; $fill: replaces missing numbers; $codes, $texts: entries that are no value. Numbers that the grid does not round to the
-- ends of the domain are outside. Repeats are counted on what would be masked (filled, clamped and on the grid), in one of $parts
-- parts of these numbers.
WITH read AS (
    SELECT
        {{times}} AS times,
        {{missing}} AS missing,
        {{number}} AS number,
        len($codes) > 0 AND coalesce(list_contains($codes, {{number}}), false)
            OR len($texts) > 0 AND coalesce(list_contains($texts, {{entry}}), false) AS coded
    FROM {{table}}
),
numbers AS (
    SELECT times, missing, coded, CASE WHEN coded THEN NULL ELSE number END AS number FROM read
),
repeats AS (
    SELECT max(times) AS most_frequent, count(*) AS different
    FROM (
        SELECT sum(times) AS times
        FROM (
            SELECT times, round((least(greatest(filled, $low), $high) - $low) / $step) AS unit
            FROM (SELECT times, CASE WHEN missing THEN $fill ELSE number END AS filled FROM numbers)
            WHERE isfinite(filled)
        )
        WHERE $parts = 1 OR hash(unit) % $parts = $part
        GROUP BY unit
    )
)
SELECT
    coalesce(sum(times) FILTER (WHERE missing AND NOT coded), 0)               AS missing,
    coalesce(sum(times) FILTER (WHERE coded), 0)                               AS coded,
    coalesce(sum(times) FILTER (WHERE NOT missing AND NOT coded AND number IS NULL), 0) AS not_a_number,
    coalesce(sum(times) FILTER (WHERE NOT isfinite(number)), 0)                AS not_finite,
    coalesce(sum(times) FILTER (WHERE isfinite(number) AND number < $low - $step / 2), 0)  AS below,
    coalesce(sum(times) FILTER (WHERE isfinite(number) AND number > $high + $step / 2), 0) AS above,
    coalesce((SELECT most_frequent FROM repeats), 0)                           AS most_frequent,
    (SELECT different FROM repeats)                                            AS different
FROM numbers;
