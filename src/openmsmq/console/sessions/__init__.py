"""Who is signed in: sessions, the link of the start, and how often one may try."""
