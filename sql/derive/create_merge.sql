-- The group of each entry: $entries in the order of $groups; $other for entries that are not listed.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN {{entry}} IS NOT NULL AND NOT list_contains($codes, {{entry}})
         THEN coalesce($groups[list_position($entries, {{entry}})], $other) END AS {{derived}}
FROM raw;
