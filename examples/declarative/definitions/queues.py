"""Which queues are read. More sources, and queues separated by commas, may be added."""

from openmsmq.spark.pipelines.declarative import define

define(
    {
        # The name under which Spark keeps how far this source was read.
        "alpha": {
            "qm": "127.0.0.2",
            "queue": r"private$\orders,system$;journal,system$;deadletter,system$;deadxact",
            "mode": "browse",
        },
    }
)
