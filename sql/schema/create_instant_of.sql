-- A date, or a date with a time, as people and programs write it (ISO 8601; a zone only if it is UTC); anything else is NULL.
CREATE OR REPLACE TEMP MACRO instant_of(entry) AS
    CASE WHEN regexp_full_match(
             entry,
             '[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+]00(:?00)?)?)?'
         ) THEN TRY_CAST(left(replace(regexp_replace(entry, '(Z|[+]00(:?00)?)$', ''), 'T', ' '), 26) AS TIMESTAMP) END;
