-- The band of each number: $edges ascend, and $labels has one more.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN value_of({{number}}, $codes) IS NOT NULL
         THEN $labels[1 + len(list_filter($edges, lambda edge: edge <= {{number}}))] END AS {{derived}}
FROM raw;
