package main

import "strconv"

// goal is one figure and what it has to reach.
type goal struct {
	id      string
	what    string // is measured
	against string // what, in the same run
	bench   string // the benchmark's full name, without processors
	units   []string
	limit   float64
	atLeast bool // the limit is the least; else it is the most
	sum     bool // the figure is the sum of all units in all lines; else the middle of the lines of the only one
	of      string
}

// measurement is one go test with what it is to run.
type measurement struct {
	pkg   string
	bench string // the pattern of -bench
	time  string // of -benchtime
	count int    // of -count: each is a line with a figure of many interleaved pairs
	env   []string
	goals []goal
}

// part is how many of the decisions at once are one line of output.
const part = 50_000

// measurements are all of them, in the order in which they are run. decisions is how many there are at once.
func measurements(decisions int) []measurement {
	each := min(part, decisions)
	return []measurement{
		{pkg: "./permissions/registry", bench: "Wake$", time: "20000x", count: 5, goals: []goal{
			{id: "P2", what: "from a commit to the return of the wait for it, in process", against: "a map, a channel and a timer",
				bench: "Wake", units: []string{"ratio"}, limit: 1.5},
		}},
		{pkg: "./permissions/registry", bench: "Pending$", time: "1x", count: 5, goals: []goal{
			{id: "P6", what: "memory for each of 100,000 that wait, beside the caller's goroutine", against: "512 B",
				bench: "Pending/waiting-100000", units: []string{"of-512-B"}, limit: 1},
			{id: "P6", what: "memory for each that nobody waits on, beside its row", against: "128 B",
				bench: "Pending/waiting-100000", units: []string{"unwatched-of-128-B"}, limit: 1},
		}},
		{pkg: "./engine/store", bench: "Throughput$", time: "5x", count: 5, goals: []goal{
			{id: "P3", what: "decided a second, durable, by 1000 at once", against: "a bare group writer of the same rows",
				bench: "Throughput/callers-1000", units: []string{"of-same-schema"}, limit: 0.8, atLeast: true},
			{id: "P3", what: "the same", against: "a bare group writer of one small row",
				bench: "Throughput/callers-1000", units: []string{"of-minimal"}, limit: 0.5, atLeast: true},
		}},
		{pkg: "./engine/store", bench: "OpenApply$/^pending-0$", time: "1000x", count: 5, goals: []goal{
			{id: "P4", what: "asked and decided, durable, one after the other", against: "two commits of a small row",
				bench: "OpenApply/pending-0", units: []string{"ratio-p50"}, limit: 1.3},
		}},
		{pkg: "./engine/store", bench: "Crowded$", time: "1000x", count: 5, goals: []goal{
			{id: "P7", what: "asked and decided while 100,000 others wait, p50", against: "the same while 100 do",
				bench: "Crowded/pending-100000", units: []string{"ratio-p50"}, limit: 1.3},
			{id: "P7", what: "the same, p99", against: "the same, p99",
				bench: "Crowded/pending-100000", units: []string{"ratio-p99"}, limit: 1.3},
		}},
		{pkg: "./agents/mcp", bench: "BlockingCall$/^clients-1$", time: "300x", count: 5, goals: []goal{
			{id: "P5", what: "a call over MCP, decided over HTTP", against: "calls that do nothing, and two commits",
				bench: "BlockingCall/clients-1", units: []string{"ratio"}, limit: 1.3},
		}},
		{pkg: "./agents/mcp", bench: "BlockingCall$/^clients-100$", time: "20x", count: 5, goals: []goal{
			{id: "P5", what: "such calls a second, by 100 at once", against: "MCP calls that do nothing",
				bench: "BlockingCall/clients-100", units: []string{"share-of-no-op"}, limit: 0.7, atLeast: true},
		}},
		{pkg: "./agents/api", bench: "WaitingCall$", time: "1x", count: 5, goals: []goal{
			{id: "P6", what: "resident memory for each of 10,000 that wait over HTTP", against: "net/http whose handler blocks",
				bench: "WaitingCall", units: []string{"ratio"}, limit: 1.5},
		}},
		{pkg: "./connectors/telegram", bench: "TapToAnswer$", time: "100x", count: 5, goals: []goal{
			{id: "P9", what: "from a tap in Telegram to the answer of the call", against: "the library's poll, and one commit",
				bench: "TapToAnswer", units: []string{"ratio"}, limit: 1.3},
		}},
		{pkg: "./cmd/daycared", bench: "Serve$", time: "1x", count: 5, goals: []goal{
			{id: "P10", what: "from exec to serving, with 100,000 that wait", against: "one second",
				bench: "Serve/pending-100000", units: []string{"s-to-serving"}, limit: 1},
			{id: "P10", what: "from SIGTERM to the end, in a long poll", against: "one second",
				bench: "Serve/pending-100000", units: []string{"s-to-end"}, limit: 1},
			{id: "P10", what: "the same, with 100,000 cards in Telegram", against: "one second",
				bench: "Serve/pending-100000", units: []string{"s-to-end-of-cards"}, limit: 1},
		}},
		{pkg: "./engine", bench: "Immediate$", time: "1x", count: (decisions + each - 1) / each, env: []string{"DECISIONS=" + strconv.Itoa(each)},
			goals: []goal{
				{id: "P1", what: "hung, doubled or lost, decided within 2 ms of the prompt", against: "none",
					bench: "Immediate/part", units: []string{"hung", "doubled", "lost"}, limit: 0, sum: true, of: "decisions"},
			}},
	}
}
