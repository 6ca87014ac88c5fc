-- Who is in one release. Anything that is no hash is one that nobody has, $other.
SELECT CASE octet_length(person) WHEN 16 THEN person ELSE $other END AS person
FROM main.exposed
WHERE release = $release;
