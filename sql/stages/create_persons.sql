-- Whose record each is, for as long as persons are counted in parts.
CREATE OR REPLACE TEMP TABLE persons AS SELECT {{person}} AS person FROM raw;
