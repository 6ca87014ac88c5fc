INSERT INTO charges
SELECT
    coalesce(max(number), 0) + 1, $population, $policy, $release, $revision, $policy_hash, $source,
    $dp_centroid, $dp_column, $dp_table, $idp_centroid, $idp_column, $idp_table, $noted
FROM charges;
