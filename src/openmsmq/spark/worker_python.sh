#!/bin/sh
# Runs Python for Spark's processes without Spark's archive on its path, where the package is
# installed as well: see session.py, which sets both names.
left=$PYTHONPATH:
kept=
while [ -n "$left" ]; do
    entry=${left%%:*}
    left=${left#*:}
    if [ "$entry" != "$PYSPARK_MSMQ_ARCHIVE" ]; then
        kept=${kept:+$kept:}$entry
    fi
done
export PYTHONPATH="$kept"
exec "${PYSPARK_MSMQ_PYTHON:-python3}" "$@"
