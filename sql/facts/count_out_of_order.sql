-- Records where one column does not come before another ($strictly: nor may they be equal). Where one of them is missing nothing is
-- compared; what is there and cannot be read is out of order.
SELECT count(*) FILTER (
    WHERE {{earlier_entry}} IS NOT NULL
      AND {{later_entry}} IS NOT NULL
      AND NOT coalesce(CASE WHEN $strictly THEN {{earlier}} < {{later}} ELSE {{earlier}} <= {{later}} END, false)
) AS broken
FROM delivered;
