-- Records whose numbers do not add up to the last one, each in whole steps of $step: more than $tolerance steps apart. Where one of them
-- is missing nothing is added; what is there and cannot be read adds up to nothing.
SELECT count(*) FILTER (
    WHERE list_count(entries) = len(entries)
      AND NOT coalesce(
          list_count(addends) = len(addends)
          AND abs(list_sum([round(addend / $step) FOR addend IN addends]) - round(total / $step)) <= $tolerance,
          false
      )
) AS broken
FROM (SELECT [{{entries}}] AS entries, [{{addends}}] AS addends, {{total}} AS total FROM delivered);
