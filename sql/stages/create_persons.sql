-- The person of each record, while persons are counted in parts.
CREATE OR REPLACE TEMP TABLE persons AS SELECT {{person}} AS person FROM raw;
