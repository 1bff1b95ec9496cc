"""Ready pipelines: plain functions from data frames to data frames, and what runs them."""
