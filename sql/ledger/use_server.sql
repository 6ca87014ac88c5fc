-- For this session: how long it waits for another writer, and after how many seconds of silence the server gives up a host that
-- is gone. An acknowledged commit is on the server's disk, for every default.
SELECT
    set_config('lock_timeout', $wait, FALSE),
    set_config('tcp_keepalives_idle', '30', FALSE),
    set_config('tcp_keepalives_interval', '10', FALSE),
    set_config('tcp_keepalives_count', '3', FALSE),
    set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), FALSE);
