-- Entries with letters that may have a compatible form.
SELECT count(*) FILTER (strlen({{entry}}({{column}})) <> length({{entry}}({{column}}))) AS beyond FROM raw;
