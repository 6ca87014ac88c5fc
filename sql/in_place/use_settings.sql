-- Postgres: how records are written as text, so that their sum is the same for every session; and how queries are planned. The
-- memory is enough for a table of counts.
SELECT set_config('extra_float_digits', '1', true), set_config('datestyle', 'ISO, YMD', true),
       set_config('intervalstyle', 'postgres', true), set_config('timezone', 'UTC', true), set_config('bytea_output', 'hex', true),
       set_config('cursor_tuple_fraction', '1', true),
       set_config('work_mem', (greatest(pg_size_bytes(current_setting('work_mem')), 134217728) / 1024)::text, true);
