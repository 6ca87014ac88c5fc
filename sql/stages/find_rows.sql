-- Where the rows that have a text in a column lie: the first, and the one behind the last; and how many there are.
SELECT coalesce(min(rowid), 0), coalesce(max(rowid) + 1, 0), count(*) FROM {{table}} WHERE {{column}} = $text;
