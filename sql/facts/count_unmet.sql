-- Records that are not as expected where a condition holds ($only: that are so where it does not). $state: missing, present, or listed,
-- one of $listed; the condition: one of $given. A missing entry is in no list, and meets no condition.
SELECT count(*) FILTER (
    WHERE CASE WHEN $only THEN coalesce(is_so, false) AND NOT coalesce(is_given, false)
               ELSE coalesce(is_given, false) AND NOT coalesce(is_so, true) END
) AS broken
FROM (
    SELECT
        CASE $state WHEN 'missing' THEN {{entry}} IS NULL
                    WHEN 'present' THEN {{entry}} IS NOT NULL
                    ELSE list_contains($listed, {{subject}}) END AS is_so,
        list_contains($given, {{other}}) AS is_given
    FROM delivered
);
