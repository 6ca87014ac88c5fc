-- Counts about one numeric column, never a value. $low and $high: the declared domain.
WITH numbers AS (
    SELECT {{entry}}({{column}}) IS NULL AS missing, {{number}}({{column}}) AS number FROM raw
),
repeats AS (
    SELECT max(times) AS most_frequent, count(*) AS different
    FROM (SELECT count(*) AS times FROM numbers WHERE isfinite(number) GROUP BY number)
)
SELECT
    count(*) FILTER (WHERE missing)                             AS missing,
    count(*) FILTER (WHERE NOT missing AND number IS NULL)      AS not_a_number,
    count(*) FILTER (WHERE NOT isfinite(number))                AS not_finite,
    count(*) FILTER (WHERE isfinite(number) AND number < $low)  AS below,
    count(*) FILTER (WHERE isfinite(number) AND number > $high) AS above,
    coalesce((SELECT most_frequent FROM repeats), 0)            AS most_frequent,
    (SELECT different FROM repeats)                             AS different
FROM numbers;
