INSERT INTO states
SELECT coalesce(max(number), 0) + 1, $policy, $release, $revision, $state, $reason, $policy_hash, $candidate_hash, $facts, $noted
FROM states;
