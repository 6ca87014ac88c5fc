-- Anything else (booleans, dates) as DuckDB writes it.
CREATE OR REPLACE TEMP MACRO entry_of_other(written) AS CAST(written AS VARCHAR);
