# ask.py KEY REASON TAG…: ask the daemon at $DAYCARED_SOCKET, and wait for the answer
import http.client, json, os, pathlib, socket, struct, sys, time
def end(code, text, out=sys.stderr):
    print(text, file=out)
    sys.exit(code)
def known(sock, path):  # or another account's program could say that all is approved; macOS has no SO_PEERCRED
    uid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] if hasattr(socket, "SO_PEERCRED") else 0
    above, safe = [os.stat(folder) for folder in pathlib.Path(os.path.realpath(path)).parents], (0, os.getuid())
    if uid not in safe and any(f.st_uid != uid and (f.st_uid not in safe or f.st_mode & 0o22) for f in above):
        end(7, f"the account {uid} serves {path}, where others than the daemon's can put a socket; nothing is asked")
if len(sys.argv) < 4: end(2, "usage: ask.py KEY REASON TAG…, as in: ask.py deploy-v42 'deploy v42' @network")
key, reason, *tags = sys.argv[1:]
met, lost, asked, path = False, False, False, os.environ.get("DAYCARED_SOCKET", "/run/daycared/agent.sock")
ask = {"kind": "permission", "permissions": tags, "reason": reason, "key": key, "wait": "0s"}  # at first, is it there at all?
exits = {"approved": 0, "denied": 3, "expired": 4, "cancelled": 5, "undeliverable": 6}
while True:
    try:
        daemon = http.client.HTTPConnection("localhost")
        daemon.sock = socket.socket(socket.AF_UNIX)
        daemon.sock.settimeout(65)  # longer than the daemon holds a call
        daemon.sock.connect(path)
        known(daemon.sock, path)
        daemon.request("POST", "/v1/requests", json.dumps(ask), {"Content-Type": "application/json"})
        answer = daemon.getresponse()
        told = json.load(answer)
        if not isinstance(told, dict): raise ValueError("the answer is not a JSON object")
    except (OSError, http.client.HTTPException, ValueError) as why:
        if not met and not isinstance(why, http.client.RemoteDisconnected): end(7, f"no daemon answers at {path}: {why}; DAYCARED_SOCKET names its socket")
        if not lost: print(f"the daemon is away ({why}); the question", "stands and is" if asked else "is", "asked again", file=sys.stderr)
        lost = True
        time.sleep(1)
        continue
    met, lost, ask["wait"] = True, False, "50s"
    wait = answer.headers.get("Retry-After", "1")
    if told.get("code") in ("limit", "ask-again") or told.get("code") == "broken" and (asked or "Retry-After" in answer.headers):
        print(told.get("detail"), file=sys.stderr)
        time.sleep(int(wait) if wait.isdecimal() else 1)  # it is busy; every other refusal stays one
    elif answer.status != 200:
        code = told.get("exit")
        end(code if code in range(1, 9) else 1, told.get("detail", json.dumps(told)))  # never 0, which means granted
    elif told.get("state") == "approved" and (told.get("kind"), set(told.get("permissions") or []), told.get("reason"),
                                              told.get("key")) != ("permission", set(tags), reason, key):
        end(1, "the answer is about another request than this one; nothing is granted")
    elif (asked := told.get("state") == "pending") is False:
        end(exits.get(told.get("state"), 1), told.get("result", json.dumps(told)), sys.stdout)
