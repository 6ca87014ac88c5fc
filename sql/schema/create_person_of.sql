-- The identity of a person, independent of spelling: compatible forms (NFKC), case, invisible characters (spaces and controls of
-- every kind, formats, fillers, selectors), and zeros around a number are folded. NFKC is NFC of every letter's compatible form,
-- and the variables have these letters and forms; looking up one letter after the other takes a hundred times as long as the
-- rest. Hashes of this are compared over years: the result for plain ASCII must never change.
CREATE OR REPLACE TEMP MACRO person_of(entry) AS
    regexp_replace(
        regexp_replace(
            lower(nfc_normalize(regexp_replace(
                CASE
                    WHEN entry IS NULL OR strlen(entry) = length(entry) THEN entry
                    WHEN getvariable('compatible_forms') IS NULL THEN error('the compatible forms are not known here')
                    WHEN NOT regexp_matches(entry, getvariable('compatible_letters')) THEN entry
                    ELSE array_to_string(
                        list_transform(
                            string_split(entry, ''),
                            lambda letter: coalesce(getvariable('compatible_forms')[letter], letter)
                        ),
                        ''
                    )
                END,
                '[\p{Z}\p{Cc}\p{Cf}\x{34F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}'
                || '\x{2800}\x{3164}\x{FE00}-\x{FE0F}\x{FFA0}\x{E0000}-\x{E0FFF}]+',
                '',
                'g'
            ))),
            '^([+]?0+)([0-9])', '\2'
        ),
        '^([0-9]+)[.]0+$', '\1'
    );
