"""Who calls by RPC, proved by NTLM or Kerberos, and what both then do to each fragment."""
