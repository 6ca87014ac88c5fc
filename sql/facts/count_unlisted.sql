-- Records with an entry that is neither one of $entries nor of $codes.
SELECT count(*) FILTER (
    WHERE {{entry}} IS NOT NULL AND NOT list_contains($codes, {{entry}}) AND NOT list_contains($entries, {{entry}})
) AS unlisted
FROM raw;
