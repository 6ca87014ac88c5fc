-- The spent part of each population's cap, in the unit of the cap: nano-epsilon or releases. Changed in the transaction of each
-- charge, and never over the cap.
CREATE TABLE IF NOT EXISTS budgets (
    population VARCHAR NOT NULL,
    unit       VARCHAR NOT NULL,
    spent      HUGEINT NOT NULL,
    cap        HUGEINT NOT NULL,
    CHECK (spent <= cap)
);
