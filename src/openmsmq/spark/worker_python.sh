#!/bin/sh
# Runs Python for Spark's processes without Spark's archive on its path, where the package is
# installed as well. session.py names both; installed as bin/openmsmq-python of a virtual
# environment, it finds them beside itself.
here=${0%/*}
python=${PYSPARK_MSMQ_PYTHON:-$here/python}
[ -x "$python" ] || python=python3
archive=$PYSPARK_MSMQ_ARCHIVE
if [ -z "$archive" ]; then
    for archive in "$here"/../lib/python3*/site-packages/pyspark/python/lib/pyspark.zip; do :; done
fi
left=$PYTHONPATH:
kept=
while [ -n "$left" ]; do
    entry=${left%%:*}
    left=${left#*:}
    if ! [ "$entry" -ef "$archive" ]; then
        kept=${kept:+$kept:}$entry
    fi
done
export PYTHONPATH="$kept"
exec "$python" "$@"
