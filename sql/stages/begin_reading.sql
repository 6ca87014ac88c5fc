-- Postgres: this transaction changes nothing, and sees the source as it is now.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
