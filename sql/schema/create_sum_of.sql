-- The sum of these numbers, to nine digits or as many as floats of their size have, so that 0.1 and 0.2 are 0.3 and whole numbers
-- stay whole.
CREATE OR REPLACE TEMP MACRO sum_of(terms) AS
    round(
        list_sum(terms),
        CAST(least(9, greatest(0, floor(15.35 - log10(greatest(1, list_sum([abs(term) FOR term IN terms])))))) AS INTEGER)
    );
