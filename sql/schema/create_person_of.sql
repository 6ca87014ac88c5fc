-- A person as they are told apart, however somebody wrote them: compatible forms, case, spaces, and zeros around a number are one.
CREATE OR REPLACE TEMP MACRO person_of(entry) AS
    regexp_replace(
        regexp_replace(lower(regexp_replace(nfc_normalize(entry), '\s+', '', 'g')), '^([+]?0+)([0-9])', '\2'),
        '^([0-9]+)[.]0+$', '\1'
    );
