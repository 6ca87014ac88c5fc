-- The two hashes of each person. Anything that is no hash is one that nobody has, $other.
SELECT
    CASE octet_length(person) WHEN 16 THEN person ELSE $other END           AS person,
    CASE octet_length(everywhere) WHEN 16 THEN everywhere ELSE $other END   AS everywhere
FROM {{table}};
