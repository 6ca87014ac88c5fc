-- The period of each date: $every is year, quarter, month, week or day.
CREATE OR REPLACE TABLE raw AS
SELECT
    *,
    CASE WHEN list_contains($codes, {{entry}}) THEN NULL
         WHEN $every = 'quarter' THEN strftime({{instant}}, '%Y') || '-Q' || quarter({{instant}})
         WHEN $every = 'week' THEN strftime({{instant}}, '%G-W%V')
         WHEN $every = 'year' THEN strftime({{instant}}, '%Y')
         WHEN $every = 'month' THEN strftime({{instant}}, '%Y-%m')
         ELSE strftime({{instant}}, '%Y-%m-%d') END AS {{derived}}
FROM raw;
