-- The first number minus the others; NULL if one of them is missing.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN list_count([value_of(number, $codes) FOR number IN [{{numbers}}]]) = len([{{numbers}}])
         THEN sum_of([{{numbers}}][1:1] || [-number FOR number IN [{{numbers}}][2:]]) END AS {{derived}}
FROM raw;
