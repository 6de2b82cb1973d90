#!/usr/bin/env python3
"""Prints a signed path: sign.py KEYID EXPIRY|- variant RECIPE SOURCE | original SOURCE | info SOURCE

The key comes in hexadecimal digits from the environment variable KEY.
"""
import base64, hashlib, hmac, os, sys
from urllib.parse import quote


def signed_path(key_id: str, key: bytes, route: str, *segments: str, expiry: int | None = None) -> str:
    rest = "".join("/" + quote(segment, safe=":,=@~") for segment in segments)
    if expiry is not None:
        rest += f"?exp={expiry}"
    code = hmac.new(key, f"/{route}{rest}".encode(), hashlib.sha256).digest()
    return f"/{route}/{key_id}.{base64.urlsafe_b64encode(code).rstrip(b'=').decode()}{rest}"


if __name__ == "__main__":
    key_id, expiry, route, *segments = sys.argv[1:]
    key = bytes.fromhex(os.environ["KEY"])
    print(signed_path(key_id, key, route, *segments, expiry=None if expiry == "-" else int(expiry)))
