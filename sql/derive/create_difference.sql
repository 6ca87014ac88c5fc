-- The first number without the others, to nine digits; nothing where one of them is missing.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN list_count([value_of(number, $codes) FOR number IN [{{numbers}}]]) = len([{{numbers}}])
         THEN round([{{numbers}}][1] - list_sum([{{numbers}}][2:]), 9) END AS {{derived}}
FROM raw;
