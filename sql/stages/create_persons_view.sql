-- Whose record each is, where persons are counted at once.
CREATE OR REPLACE TEMP VIEW persons AS SELECT {{person}} AS person FROM raw;
