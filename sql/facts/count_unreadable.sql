-- Records with an entry that cannot be read as its declared type, or is infinite; missing entries, and those in $codes, are not
-- counted.
SELECT
    count(*) FILTER (
        WHERE {{entry}} IS NOT NULL AND NOT list_contains($codes, {{entry}}) AND ({{read}} IS NULL OR isinf({{read}}))
    ) AS unreadable
FROM raw;
