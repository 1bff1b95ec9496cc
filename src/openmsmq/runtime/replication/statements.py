"""What is said to PostgreSQL: the tables of a log, and one statement for each request.

Each statement is one transaction, and checks in it what it depends on. `clock_timestamp()` is the
clock of the database at the moment at which it holds the line about the log.
"""

from __future__ import annotations

from typing import Final

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS openmsmq_log (
    name text PRIMARY KEY, log text NOT NULL, mark text NOT NULL, epoch bigint NOT NULL,
    holder text NOT NULL, first bigint NOT NULL, last bigint NOT NULL, confirmed bigint NOT NULL,
    lease_until timestamptz NOT NULL, handover boolean NOT NULL, lease_ms bigint NOT NULL
) WITH (fillfactor = 20);
CREATE TABLE IF NOT EXISTS openmsmq_record (
    name text NOT NULL, number bigint NOT NULL, record bytea NOT NULL,
    PRIMARY KEY (name, number)
);
ALTER TABLE openmsmq_record ALTER COLUMN record SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS openmsmq_follower (
    name text NOT NULL, follower text NOT NULL, number bigint NOT NULL, seen timestamptz NOT NULL,
    files text NOT NULL DEFAULT '', PRIMARY KEY (name, follower)
);
"""

EXISTS: Final = "SELECT to_regclass('openmsmq_follower') IS NOT NULL"

CREATE: Final = """
INSERT INTO openmsmq_log
VALUES ($1, $2, $3, 0, '', $4::bigint + 1, $4::bigint, $4::bigint, clock_timestamp(), false, 0)
ON CONFLICT DO NOTHING
"""

STANDBYS: Final = """
SELECT current_setting('synchronous_standby_names'), current_setting('fsync'),
    current_setting('synchronous_commit')
"""

MARK: Final = "SELECT mark FROM openmsmq_log WHERE name = $1"

_STATE: Final = (
    "log, epoch, holder, first, last, confirmed, lease_until <= clock_timestamp(), handover"
)
_LATER: Final = "clock_timestamp() + ${} * interval '1 millisecond'"

STATE: Final = f"SELECT {_STATE} FROM openmsmq_log WHERE name = $1"

# So many bytes at once and no more, whoever lags; the first one without its bytes if it alone has
# more, for `READ_PART`.
READ: Final = f"""
SELECT {_STATE}, r.number, CASE WHEN r.size <= $4::bigint THEN r.record END, r.size
FROM openmsmq_log l LEFT JOIN LATERAL (
    SELECT number, record, octet_length(record) AS size, count(*) OVER place AS place,
        sum(octet_length(record)) OVER place AS total
    FROM openmsmq_record WHERE name = $1 AND number > $2::bigint
    WINDOW place AS (ORDER BY number) ORDER BY number LIMIT $3::bigint
) r ON r.place = 1 OR r.total <= $4::bigint WHERE l.name = $1 ORDER BY r.number
"""

READ_PART: Final = """
SELECT substring(record FROM $3::int FOR $4::int) FROM openmsmq_record
WHERE name = $1 AND number = $2::bigint
"""

# The clock of the database was put back, or another server's is behind: nobody has had so long a
# lease. It ends a whole lease from now, which whoever has it does not outlive unnoticed.
SHORTEN: Final = """
UPDATE openmsmq_log SET lease_until = clock_timestamp() + lease_ms * interval '1 millisecond'
WHERE name = $1 AND lease_until > clock_timestamp() + lease_ms * interval '1 millisecond'
"""

NOTED: Final = "SELECT number FROM openmsmq_follower WHERE name = $1 AND follower = $2"

# Where a follower is may be forgotten by a crash: the log then keeps more, not less.
NOTE_FOLLOWER: Final = """
INSERT INTO openmsmq_follower (name, follower, number, seen)
SELECT name, $2, $3::bigint, clock_timestamp() FROM openmsmq_log
WHERE name = $1 AND first <= $3::bigint + 1
ON CONFLICT (name, follower) DO UPDATE SET number = excluded.number, seen = excluded.seen
"""

TAKE: Final = f"""
UPDATE openmsmq_log SET epoch = epoch + 1, holder = $2, handover = false,
    lease_until = {_LATER.format(4)}, lease_ms = $4::bigint
WHERE name = $1 AND epoch = $3::bigint AND lease_until <= clock_timestamp()
RETURNING {_STATE}
"""

RENEW: Final = f"""
UPDATE openmsmq_log SET confirmed = greatest(confirmed, $4::bigint),
    lease_until = {_LATER.format(5)}, lease_ms = $5::bigint
WHERE name = $1 AND epoch = $2::bigint AND holder = $3
RETURNING {_STATE}
"""

RELEASE: Final = f"""
UPDATE openmsmq_log SET lease_until = clock_timestamp()
WHERE name = $1 AND epoch = $2::bigint AND holder = $3
RETURNING {_STATE}
"""

# It gives no more than what is new to whoever held the epoch and knew the number.
APPEND: Final = f"""
WITH fence AS (
    UPDATE openmsmq_log SET last = $4::bigint, confirmed = $4::bigint - 1,
        lease_until = {_LATER.format(6)}, lease_ms = $6::bigint
    WHERE name = $1 AND epoch = $2::bigint AND holder = $3 AND last = $4::bigint - 1
    RETURNING log, first, handover
), put AS (
    INSERT INTO openmsmq_record SELECT $1, $4::bigint, $5::bytea FROM fence
)
SELECT * FROM fence
"""

TRIM: Final = f"""
WITH fence AS (
    UPDATE openmsmq_log SET first = greatest(first, least($4::bigint, $6::bigint,
        (SELECT min(number) FROM openmsmq_follower WHERE name = $1 AND follower <> $5
            AND seen > clock_timestamp() - $8 * interval '1 hour'),
        first - 1 + $7::bigint) + 1)
    WHERE name = $1 AND epoch = $2::bigint AND holder = $3
    RETURNING {_STATE}
), own AS (
    INSERT INTO openmsmq_follower (name, follower, number, seen)
    SELECT $1, $5, $6::bigint, clock_timestamp() FROM fence
    ON CONFLICT (name, follower) DO UPDATE SET number = excluded.number, seen = excluded.seen
), gone AS (
    DELETE FROM openmsmq_record
    WHERE name = $1 AND number < (SELECT first FROM fence)
)
SELECT * FROM fence
"""

HAND_OVER: Final = """
UPDATE openmsmq_log SET handover = true WHERE name = $1 AND lease_until > clock_timestamp()
RETURNING epoch, holder
"""

FOLLOWERS: Final = """
SELECT follower, number, extract(epoch FROM clock_timestamp() - seen)::bigint, files
FROM openmsmq_follower WHERE name = $1 ORDER BY seen DESC LIMIT 100
"""

# A primary that nobody has seen as a standby has no line yet; it counts as one that lacks all.
TELL_FILES: Final = """
INSERT INTO openmsmq_follower SELECT name, $2, first - 1, clock_timestamp(), $3 FROM openmsmq_log
WHERE name = $1
ON CONFLICT (name, follower) DO UPDATE SET files = excluded.files
"""

FILES_OF_HOLDER: Final = """
SELECT f.files FROM openmsmq_log l
JOIN openmsmq_follower f ON f.name = l.name AND f.follower = regexp_replace(l.holder, ' [^ ]*$', '')
WHERE l.name = $1
"""
