#!/bin/bash
# Writes botapi.json beside itself: the Bot API as JSON Schema, from the npm package @gramio/types. Needs node and npm,
# and the network; no test runs it. Run it again to follow a newer Bot API, with the version changed here and in the
# README.
set -euo pipefail
out=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --no-audit --no-fund --save-exact @gramio/types@10.3.1 ts-json-schema-generator@2.9.0 >/dev/null

cat > tsconfig.json <<'JSON'
{"compilerOptions": {"target": "es2022", "module": "nodenext", "moduleResolution": "nodenext", "strict": true,
  "skipLibCheck": true}, "include": ["spec.ts"]}
JSON

cat > spec.ts <<'TS'
import type * as P from '@gramio/types/params';
import type * as O from '@gramio/types/objects';
interface Nothing {}
export interface Params {
  getMe: Nothing; getWebhookInfo: Nothing;
  getUpdates: P.GetUpdatesParams; deleteWebhook: P.DeleteWebhookParams;
  setMyCommands: P.SetMyCommandsParams; getMyCommands: P.GetMyCommandsParams;
  deleteMyCommands: P.DeleteMyCommandsParams; setMyDescription: P.SetMyDescriptionParams;
  sendMessage: P.SendMessageParams; sendDocument: P.SendDocumentParams; sendChatAction: P.SendChatActionParams;
  editMessageText: P.EditMessageTextParams; editMessageReplyMarkup: P.EditMessageReplyMarkupParams;
  deleteMessage: P.DeleteMessageParams; setMessageReaction: P.SetMessageReactionParams;
  answerCallbackQuery: P.AnswerCallbackQueryParams;
  getChat: P.GetChatParams; getChatMember: P.GetChatMemberParams; leaveChat: P.LeaveChatParams;
  getFile: P.GetFileParams;
}
export interface Results {
  getMe: O.TelegramUser; getWebhookInfo: O.TelegramWebhookInfo;
  getUpdates: O.TelegramUpdate[]; deleteWebhook: true;
  setMyCommands: true; getMyCommands: O.TelegramBotCommand[];
  deleteMyCommands: true; setMyDescription: true;
  sendMessage: O.TelegramMessage; sendDocument: O.TelegramMessage; sendChatAction: true;
  editMessageText: O.TelegramMessage; editMessageReplyMarkup: O.TelegramMessage;
  deleteMessage: true; setMessageReaction: true;
  answerCallbackQuery: true;
  getChat: O.TelegramChatFullInfo; getChatMember: O.TelegramChatMember; leaveChat: true;
  getFile: O.TelegramFile;
}
export interface Spec {
  params: Params; results: Results; update: O.TelegramUpdate; parameters: O.TelegramResponseParameters;
}
TS

npx ts-json-schema-generator --path spec.ts --type Spec --tsconfig tsconfig.json --no-type-check -o raw.json

# What only a TypeScript caller may pass is not what travels: objects that turn themselves into text or JSON. A file is
# sent as attach://NAME beside the part NAME. Numbers are integers: the few of type Float (a place on the map) are in no
# message of these methods.
cat > strip.mjs <<'JS'
import { readFileSync, writeFileSync } from 'node:fs';
const conversion = s => s?.required?.length === 1 && ['toJSON', 'toString'].includes(s.required[0]);
function strip(value) {
  if (Array.isArray(value)) return value.map(strip);
  if (value === null || typeof value !== 'object') return value;
  const kept = {};
  for (const [key, inner] of Object.entries(value)) {
    if (['description', 'examples'].includes(key) && typeof inner === 'string') continue;
    kept[key] = strip(inner);
    if (key === 'type' && inner === 'number') kept.type = 'integer';
    if (key === 'type' && Array.isArray(inner)) kept.type = inner.map(t => t === 'number' ? 'integer' : t);
  }
  if (Array.isArray(kept.anyOf)) {
    kept.anyOf = kept.anyOf.filter(s => !conversion(s));
    if (kept.anyOf.length === 1) return kept.anyOf[0];
  }
  return kept;
}
const raw = strip(JSON.parse(readFileSync('raw.json')));
raw.definitions.TelegramInputFile = { type: 'string' };
const names = Object.keys(raw.definitions).sort();
const lines = names.map(name => `${JSON.stringify(name)}:${JSON.stringify(raw.definitions[name])}`);
writeFileSync(process.argv[2],
  `{"$schema":${JSON.stringify(raw.$schema)},"$ref":${JSON.stringify(raw.$ref)},"definitions":{\n${lines.join(',\n')}\n}}\n`);
JS
node strip.mjs "$out/botapi.json"
