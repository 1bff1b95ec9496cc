"""Samba's own client of NTLM, SPNEGO and Kerberos, which speaks with the tests line by line.

It runs under the system's Python, which has Samba's modules. Each line that it reads is a verb with
bytes in hexadecimal; each that it writes is the answer.
"""

import sys

from samba import credentials, gensec, param


def main() -> None:
    mechanism, user, password, domain, realm, host, configuration, *more = sys.argv[1:]
    settings = param.LoadParm()
    settings.load(configuration)
    who = credentials.Credentials()
    who.guess(settings)
    who.set_username(user)
    who.set_password(password)
    who.set_domain(domain)
    who.set_realm(realm)
    client = gensec.Security.start_client({"lp_ctx": settings, "target_hostname": host})
    client.set_credentials(who)
    client.set_target_hostname(host)
    client.set_target_service("host")
    client.want_feature(gensec.FEATURE_SIGN)
    client.want_feature(gensec.FEATURE_SEAL)
    client.want_feature(gensec.FEATURE_DCE_STYLE)
    if more == ["header"]:
        client.want_feature(gensec.FEATURE_SIGN_PKT_HEADER)
    client.start_mech_by_name(mechanism)
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *parts = line.rstrip("\n").split(" ")
        first, second = [bytes.fromhex(part) for part in (*parts, "", "")[:2]]
        if verb == "update":
            is_done, token = client.update(first)
            print(int(is_done), (token or b"").hex(), flush=True)
        elif verb == "sign":
            print(client.sign_packet(first, second).hex(), flush=True)
        elif verb == "check":
            data, covered, signature = (bytes.fromhex(part) for part in parts)
            client.check_packet(data, covered, signature)
            print("right", flush=True)
        elif verb == "seal":
            print(client.wrap(first).hex(), flush=True)
        elif verb == "unseal":
            print(client.unwrap(first).hex(), flush=True)


main()
