// Asks people through daycared, from node 22.18 or newer, and waits for as long as they take:
//   DAYCARED_URL=https://daycared.example DAYCARED_TOKEN_FILE=token node ask.ts KEY REASON TAG…
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

const [key, reason, ...permissions] = process.argv.slice(2)
const token = readFileSync(process.env.DAYCARED_TOKEN_FILE ?? 'token', 'utf8').trim()
const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}`, 'Daycared-Call': randomUUID() }
const body = JSON.stringify({ kind: 'permission', permissions, reason, key, wait: '50s' })
type Told = { state: string; result: string; detail: string }
const ask = (): Promise<Response> => fetch(`${process.env.DAYCARED_URL}/v1/requests`,
  { method: 'POST', headers, body, redirect: 'error', signal: AbortSignal.timeout(65_000) })

for (const until = Date.now() + 3600_000; Date.now() < until;) {
  const answer = await ask().catch(() => undefined) // the daemon is away; the question stands, and the key finds it again
  const told: Told | undefined = await answer?.json().catch(() => undefined)
  if (answer?.ok && told && told.state !== 'pending') {
    console.log(told.result)
    process.exit(told.state === 'approved' ? 0 : 3)
  }
  if (answer && told && ![200, 429, 503].includes(answer.status)) throw new Error(told.detail)
  if (!answer?.ok) await pause(1000 * Number(answer?.headers.get('Retry-After') ?? 1))
}
throw new Error('nobody has answered, and that is not a yes')
