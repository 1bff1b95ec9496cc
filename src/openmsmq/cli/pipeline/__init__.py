"""`openmsmq pipeline`: the ready pipelines on Spark, one module for each."""
