-- A date or a time of the source's own type as a moment, in UTC if it has a zone; an infinite one becomes NULL.
CREATE OR REPLACE TEMP MACRO instant_of_time(written) AS
    CASE WHEN isfinite(TRY_CAST(written AS TIMESTAMP)) THEN TRY_CAST(written AS TIMESTAMP) END;
