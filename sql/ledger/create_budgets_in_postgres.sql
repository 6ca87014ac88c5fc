-- Like create_budgets, whose number type has another name here.
CREATE TABLE budgets (
    population VARCHAR NOT NULL,
    unit       VARCHAR NOT NULL,
    spent      NUMERIC(39, 0) NOT NULL,
    cap        NUMERIC(39, 0) NOT NULL,
    CHECK (spent <= cap)
);
