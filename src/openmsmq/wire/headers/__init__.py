"""One file per header, with reading, writing and showing side by side.

Each header is a frozen value with everything its bytes said, except what follows from structure:
sizes, counts and the bits that announce other parts are computed when it is written. Decoding and
encoding are therefore inverse to each other, padding and reserved bits included.
"""
