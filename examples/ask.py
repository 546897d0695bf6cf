#!/usr/bin/env python3
"""Asks people through daycared, and waits for as long as they take: ask.py KEY REASON TAG…"""
import http.client, json, os, secrets, socket, sys, time


class Daycared(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.environ["DAYCARED_SOCKET"])


key, reason, *tags = sys.argv[1:]
body = json.dumps({"kind": "permission", "permissions": tags, "reason": reason, "key": key, "wait": "50s"})
headers = {"Content-Type": "application/json", "Daycared-Call": secrets.token_hex(16)}
until = time.monotonic() + 3600
while time.monotonic() < until:
    try:
        connection = Daycared("localhost", timeout=65)
        connection.request("POST", "/v1/requests", body, headers)
        answer = connection.getresponse()
        told = json.load(answer)
    except (OSError, http.client.HTTPException, ValueError):
        time.sleep(1)  # the daemon is away; the question stands, and the key finds it again
        continue
    if answer.status == 200 and told["state"] != "pending":
        print(told["result"])
        sys.exit(0 if told["state"] == "approved" else 3)
    if answer.status in (429, 503):
        time.sleep(int(answer.headers.get("Retry-After", 1)))
    elif answer.status != 200:
        sys.exit(told["detail"])
sys.exit("nobody has answered, and that is not a yes")
