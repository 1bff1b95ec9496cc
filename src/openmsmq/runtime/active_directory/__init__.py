"""Active Directory as the directory of an enterprise, by the mapping of MS-MQDSSM over LDAP.

`entries`, `names`, `descriptors`, `topology`, `managers`, `queues`, `users`, `lists` and `image`
turn LDAP entries into the objects of the model and back, and do nothing else. `connection`,
`session`, `reader`, `writer`, `settings` and `client` ask a server. A configuration can be read
where bonsai, the client library, is not installed.
"""
