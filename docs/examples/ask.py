# ask.py KEY REASON TAG…: ask the daemon at $DAYCARED_SOCKET, and wait for the answer
import http.client, json, os, socket, sys, time
key, reason, *tags = sys.argv[1:]
path = os.environ.get("DAYCARED_SOCKET", "/run/daycared/agent.sock")
ask = {"kind": "permission", "permissions": tags, "reason": reason, "key": key, "wait": "0s"}  # at first, is it there at all?
exits = {"approved": 0, "denied": 3, "expired": 4, "cancelled": 5, "undeliverable": 6}
class Daycared(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(65)  # longer than the daemon holds a call
        self.sock.connect(path)
def end(code, text, out=sys.stderr): sys.exit(print(text, file=out) or code)
met = lost = False
while True:
    try:
        (daemon := Daycared("localhost")).request("POST", "/v1/requests", json.dumps(ask), {"Content-Type": "application/json"})
        told, met, lost = json.load(answer := daemon.getresponse()), True, False
        ask["wait"] = "50s"
    except (OSError, http.client.HTTPException, ValueError) as why:
        if not met: end(7, f"no daemon answers at {path}: {why}")
        if not lost: print(f"the daemon is away ({why}); the question stands and is asked again", file=sys.stderr)
        lost = time.sleep(1) or True
        continue
    pause = int(answer.headers.get("Retry-After", 1))
    if answer.status in (429, 503) and pause <= 60: time.sleep(pause)  # it is busy
    elif answer.status != 200: end(told["exit"], told["detail"])
    elif told["state"] != "pending": end(exits[told["state"]], told["result"], sys.stdout)
