// daycared asks people before opencode uses a tool. `daycared connect opencode --write` wrote this file, and
// `daycared connect opencode --remove` takes it away: whatever is changed in it is lost.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";

const [program, ...words] = COMMAND;
const waiting = new Set();
process.on("exit", () => waiting.forEach((hook) => hook.kill()));

// ask has daycared's verdict on a call. Whatever goes wrong is a denial.
const ask = (call) =>
  new Promise((settle) => {
    const hook = spawn(program, words);
    let said = "", complaint = "";
    waiting.add(hook);
    hook.stdout.setEncoding("utf8").on("data", (text) => (said += text));
    hook.stderr.setEncoding("utf8").on("data", (text) => (complaint += text));
    hook.stdin.on("error", () => {}); // it ended before it read the call, and that is seen below
    hook.on("error", (err) => settle({ reason: `Not allowed: daycared does not start: ${err.message}.` }));
    hook.on("close", (code) => {
      waiting.delete(hook);
      try {
        if (code === 0) return settle(JSON.parse(said));
      } catch {}
      settle({ reason: complaint.trim() });
    });
    hook.stdin.end(call);
  });

// tell has a person told what has happened in a session of its own, and nothing waits for that.
const tell = (event) => {
  try {
    const hook = spawn(program, [...words, "--notice"], { stdio: ["pipe", "ignore", "ignore"] });
    hook.on("error", () => {});
    hook.stdin.on("error", () => {});
    hook.stdin.end(JSON.stringify(event));
  } catch {}
};

const sessions = new Map(), prompts = new Map(); // by the ids of sessions

export const Daycared = async ({ directory }) => {
  try {
    writeFileSync(new URL("daycared.js.loaded", import.meta.url), ""); // daycared doctor looks for it
  } catch {}
  return {
    event: async ({ event: { type, properties } }) => {
      if (["session.created", "session.updated"].includes(type)) return void sessions.set(properties.info?.id, properties.info);
      const session = sessions.get(properties?.sessionID);
      if (!["session.idle", "session.error"].includes(type) || !session) return;
      if (session.parentID) return; // another session goes on with what this one did
      const error = properties.error?.data?.message ?? properties.error?.name;
      tell({ event: type, sessionID: session.id, cwd: directory, title: session.title, error });
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      prompts.set(sessionID, parts?.find((part) => part.text && !part.synthetic)?.text.slice(0, 1000));
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const told = { session_title: sessions.get(sessionID)?.title, last_prompt: prompts.get(sessionID) };
      const verdict = await ask(JSON.stringify({ tool, sessionID, callID, args, cwd: directory, ...told }));
      if (verdict?.decision !== "allow") throw new Error(verdict?.reason || "Not allowed: daycared gave no verdict.");
    },
  };
};
