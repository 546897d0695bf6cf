// ask.mjs KEY REASON TAG…: ask the daemon at $DAYCARED_URL with a token, and wait for the answer; for node 18 or newer
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
const end = (code, say, text) => { say(text); process.exit(code) }
const [key, reason, ...permissions] = process.argv.slice(2)
if (!permissions.length) end(2, console.error, "usage: ask.mjs KEY REASON TAG…, as in: ask.mjs deploy-v42 'deploy v42' @network")
const url = process.env.DAYCARED_URL ?? 'http://127.0.0.1:7801'
const file = process.env.DAYCARED_TOKEN_FILE ?? 'token'
let token
try { token = readFileSync(file, 'utf8').trim() } catch (why) {
  end(2, console.error, `read the token file: ${why.message}; DAYCARED_TOKEN_FILE names it`)
}
const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` }
const ask = { kind: 'permission', permissions, reason, key, wait: '0s' } // at first, is it there at all?
const exits = new Map(Object.entries({ approved: 0, denied: 3, expired: 4, cancelled: 5, undeliverable: 6 }))
const mine = (told) => told.kind === 'permission' && told.reason === reason && told.key === key &&
  [...new Set(permissions)].join('\n') === told.permissions?.join?.('\n')
for (let met = false, lost = false, asked = false; ;) {
  try {
    const signal = AbortSignal.timeout(65_000) // longer than the daemon holds a call
    const body = JSON.stringify(ask)
    const answer = await fetch(`${url}/v1/requests`, { method: 'POST', headers, body, redirect: 'error', signal })
    const told = await answer.json(), wait = Number(answer.headers.get('Retry-After') ?? 1) || 1
    if (told?.constructor !== Object) throw new Error('the answer is not a JSON object')
    met = true, lost = false, ask.wait = '50s'
    const refused = [1, 2, 3, 4, 5, 6, 7, 8].includes(told.exit) ? told.exit : 1 // never 0, which means granted
    if (['limit', 'ask-again'].includes(told.code) || (told.code === 'broken' && (asked || answer.headers.has('Retry-After')))) {
      console.error(told.detail)
      await pause(wait * 1000) // it is busy; every other refusal stays one
    } else if (answer.status !== 200) end(refused, console.error, told.detail ?? JSON.stringify(told))
    else if (told.state === 'approved' && !mine(told)) end(1, console.error, 'the answer is about another request than this one')
    else if (!(asked = told.state === 'pending')) end(exits.get(told.state) ?? 1, console.log, told.result ?? JSON.stringify(told))
  } catch (why) {
    if (!met && why.cause?.code !== 'UND_ERR_SOCKET') end(7, console.error, `no daemon answers at ${url}: ${why.cause ?? why}`)
    if (!lost) console.error(`the daemon is away (${why.cause ?? why}); the question ${asked ? 'stands and ' : ''}is asked again`)
    lost = await pause(1000, true)
  }
}
