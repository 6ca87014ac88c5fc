-- Everybody with $slots rows: those without a record have the key and nothing else, and follow all records that were delivered, in the
-- order of these.
CREATE OR REPLACE TABLE raw AS
SELECT * EXCLUDE ({{place}}) FROM (
    SELECT *, false AS {{empty}}, rowid AS {{place}} FROM raw
    UNION ALL BY NAME
    SELECT {{column}}, true AS {{empty}}, {{place}}
    FROM (
        SELECT {{column}}, {{place}}, unnest(range($slots - records))
        FROM (
            SELECT arg_min({{column}}, rowid) AS {{column}}, min(rowid) AS {{place}}, count(*) AS records
            FROM raw
            GROUP BY {{person}}
        )
    )
)
ORDER BY {{empty}}, {{place}};
