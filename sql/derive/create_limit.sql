-- Each number, moved to $bottom or $top if it is beyond; a limit that is NULL moves none.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN value_of({{number}}, $codes) IS NULL THEN NULL
         WHEN {{number}} < $bottom THEN $bottom
         WHEN {{number}} > $top THEN $top
         ELSE {{number}} END AS {{derived}}
FROM raw;
