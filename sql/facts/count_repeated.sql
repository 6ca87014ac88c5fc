-- Records that have the same entries as another one in all of these columns. Where one of them is missing a record is like no other.
SELECT coalesce(sum(records), 0) AS broken
FROM (
    SELECT count(*) AS records
    FROM (SELECT [{{entries}}] AS entries FROM delivered)
    WHERE list_count(entries) = len(entries)
    GROUP BY entries
    HAVING count(*) > 1
);
