-- The person of each record, if persons are counted at once.
CREATE OR REPLACE TEMP VIEW persons AS SELECT {{person}} AS person FROM raw;
