-- How many units the second moment comes after the first, by the units that contain them; NULL if one of them is missing.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN NOT list_contains($codes, {{entry}}) AND NOT list_contains($codes, {{other}})
         THEN date_diff($unit, {{first}}, {{second}}) END AS {{derived}}
FROM raw;
