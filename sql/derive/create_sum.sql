-- The sum of the numbers; NULL if one of them is missing.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN list_count([value_of(number, $codes) FOR number IN [{{numbers}}]]) = len([{{numbers}}])
         THEN sum_of([{{numbers}}]) END AS {{derived}}
FROM raw;
