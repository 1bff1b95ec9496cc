"""Which normative statements of the specifications the tests show."""
