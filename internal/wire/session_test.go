package wire

import (
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// The member names and their order are a contract. What a session waits for says which pause it is, and which calls.
func TestASessionAsProgramsReadIt(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("", 3600))
	idle := permissions.AgentSession{
		ID: "01S", Agent: "helper", Person: "fay", Status: permissions.Idle, Model: "qwen3", Tokens: 7, Cost: 9, Version: 2,
		CreatedAt: at, ChangedAt: at.Add(time.Minute),
	}
	rest := `"started":"2026-11-21T11:00:00Z","changed":"2026-11-21T11:01:00Z","ended":null}`
	waits, gone, over := idle, idle, idle
	waits.Status, waits.Request, waits.Parent = permissions.Paused, "01R", "01P"
	gone.Status, gone.Request, gone.Tool = permissions.AwaitingUser, "01R", "run_command"
	over.EndedAt = at
	pause := permissions.Request{
		ID: "01R", Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Message: "look", Reason: "because", Details: "all of it",
	}
	asks := permissions.Request{
		ID: "01R", Kind: permissions.KindTool, Reason: "because", Step: 3, Calls: []permissions.Call{
			{N: 1, Tool: "write_file", Input: []byte(`{"path":"a"}`), AffectedPath: "/ws/a"}, {N: 2, Tool: "run_command"},
		},
	}
	for _, c := range []struct {
		s    permissions.SessionView
		want string
	}{
		{permissions.SessionView{Session: idle}, `{"id":"01S","agent":"helper","status":"idle","model":"qwen3","tokens":7,"version":2,` +
			`"waiting_on":null,"person":"fay","parent":null,"cost":9,"debug":false,` + rest},
		{permissions.SessionView{Session: waits, WaitsOn: pause}, `{"id":"01S","agent":"helper","status":"paused","model":"qwen3",` +
			`"tokens":7,"version":2,"waiting_on":{"request":"01R","kind":"pause","tool":null,"message":"look",` +
			`"details":"all of it","mode":"confirm","calls":null},` +
			`"person":"fay","parent":"01P","cost":9,"debug":false,` + rest},
		{permissions.SessionView{Session: waits, WaitsOn: asks}, `{"id":"01S","agent":"helper","status":"paused","model":"qwen3",` +
			`"tokens":7,"version":2,"waiting_on":{"request":"01R","kind":"tool","tool":null,"message":"because","details":null,"mode":null,` +
			`"calls":[{"tool":"write_file","args":{"path":"a"},"step":3,"affected_path":"/ws/a"},` +
			`{"tool":"run_command","args":null,"step":3,"affected_path":null}]},` +
			`"person":"fay","parent":"01P","cost":9,"debug":false,` + rest},
		{permissions.SessionView{Session: gone}, `{"id":"01S","agent":"helper","status":"awaiting_user","model":"qwen3","tokens":7,` +
			`"version":2,"waiting_on":{"request":"01R","kind":null,"tool":"run_command","message":null,"details":null,"mode":null,"calls":null},` +
			`"person":"fay","parent":null,"cost":9,"debug":false,` + rest},
		{permissions.SessionView{Session: over}, `{"id":"01S","agent":"helper","status":"idle","model":"qwen3","tokens":7,"version":2,` +
			`"waiting_on":null,"person":"fay","parent":null,"cost":9,"debug":false,"started":"2026-11-21T11:00:00Z",` +
			`"changed":"2026-11-21T11:01:00Z","ended":"2026-11-21T11:00:00Z"}`},
	} {
		text, err := Encode(FromSession(c.s))
		if err != nil || string(text) != c.want {
			t.Errorf("%s, %v\nwant %s", text, err, c.want)
		}
	}
}
