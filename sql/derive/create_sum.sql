-- The sum of the numbers, to nine digits so that 0.1 and 0.2 are 0.3; nothing where one of them is missing.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN list_count([value_of(number, $codes) FOR number IN [{{numbers}}]]) = len([{{numbers}}])
         THEN round(list_sum([{{numbers}}]), 9) END AS {{derived}}
FROM raw;
