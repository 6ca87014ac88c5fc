-- Whether this server of Postgres writes parameters of statements to its log: cells go to it as such.
SELECT coalesce(max(setting) FILTER (WHERE name = 'log_parameter_max_length'), '-1') <> '0' AND bool_or(
    name IN ('log_min_duration_statement', 'log_min_duration_sample', 'auto_explain.log_min_duration') AND setting <> '-1'
    OR name = 'log_statement' AND setting = 'all'
    OR name = 'log_transaction_sample_rate' AND setting <> '0'
) AS are_logged
FROM pg_settings;
