-- HMAC-SHA256 of a person by the pads of two keys, each cut to 16 bytes, one behind the other.
CREATE OR REPLACE TEMP MACRO people_after(inner_pad, outer_pad, everywhere_inner, everywhere_outer, entry) AS unhex(
    left(sha256(outer_pad || unhex(sha256(inner_pad || entry))), 32)
    || left(sha256(everywhere_outer || unhex(sha256(everywhere_inner || entry))), 32)
);
