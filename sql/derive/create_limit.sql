-- Each number, moved to $bottom or $top where it lies beyond; NULL is no limit.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN value_of({{number}}, $codes) IS NOT NULL
         THEN least(greatest({{number}}, coalesce($bottom, {{number}})), coalesce($top, {{number}})) END AS {{derived}}
FROM raw;
