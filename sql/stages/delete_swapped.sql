DELETE FROM main.swapped WHERE policy = $policy;
