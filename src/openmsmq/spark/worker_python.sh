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
# Answers and record batches of some megabytes come and go. The C library keeps their place for the
# next one; otherwise the kernel takes it back and clears it anew each time.
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-33554432}"
export MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-67108864}"
exec "$python" "$@"
