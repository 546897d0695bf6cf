// node ide.mjs CODEX PROMPT: an editor that runs a turn of `codex app-server`, with the approval policy on-request in a sandbox
// that only reads. Whatever Codex asks it, it says so and refuses. Ctrl-C interrupts the turn.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
const [codex, prompt] = process.argv.slice(2);
const server = spawn(codex, ["app-server"], { stdio: ["pipe", "pipe", "inherit"], detached: true });
let id = 0, thread, turn;
const waiting = new Map();
const send = (m) => server.stdin.write(JSON.stringify(m) + "\n");
const call = (method, params) => new Promise((done) => (waiting.set(++id, done), send({ id, method, params })));
const end = (code) => (server.stdin.end(), server.kill(), process.exit(code));
createInterface({ input: server.stdout }).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.method && m.id !== undefined) {
    console.log(`The editor is asked: ${line}`);
    send({ id: m.id, result: { decision: "decline" } });
  } else if (m.id !== undefined) {
    if (m.error) console.log(`Codex refuses: ${line}`), end(1);
    waiting.get(m.id)?.(m.result);
  } else if (m.method === "hook/completed" || m.method === "error") {
    console.log(line);
  } else if (m.method === "turn/completed") {
    console.log(`The turn is over: ${m.params.turn.status}.`), end(0);
  }
});
process.on("SIGINT", () => call("turn/interrupt", { threadId: thread, turnId: turn }));
process.on("SIGTERM", () => end(0));
server.on("exit", () => process.exit(1));
await call("initialize", { clientInfo: { name: "ide", title: "An editor", version: "1" } });
send({ method: "initialized" });
thread = (await call("thread/start", { approvalPolicy: "on-request", sandbox: "read-only", cwd: process.cwd() })).thread.id;
turn = (await call("turn/start", { threadId: thread, input: [{ type: "text", text: prompt }] })).turn.id;
