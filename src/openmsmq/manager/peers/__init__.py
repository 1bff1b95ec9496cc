"""Who other queue managers are, on whose word we act, and what waits for them."""
