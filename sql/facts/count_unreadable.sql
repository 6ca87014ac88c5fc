-- Records where something stands that cannot be read as what it must be, or is infinite; what is missing, or one of $codes, is not
-- counted.
SELECT
    count(*) FILTER (
        WHERE {{entry}} IS NOT NULL AND NOT list_contains($codes, {{entry}}) AND ({{read}} IS NULL OR isinf({{read}}))
    ) AS unreadable
FROM raw;
