package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/hooks"
)

// TestAHungFileSystemDeniesACall: a hook does not wait for it beyond its time, and what comes later changes nothing.
func TestAHungFileSystemDeniesACall(t *testing.T) {
	d, _ := hooks.Find("gemini")
	call, err := d.Read([]byte(`{"hook_event_name":"BeforeTool","session_id":"s","cwd":"/srv","tool_name":"T","tool_input":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	hung, over := make(chan struct{}), make(chan struct{})
	got, err := inTime(time.Millisecond, call, func(c *hooks.Call) error {
		defer close(over)
		<-hung
		c.Request.Harmless = true
		return nil
	})
	close(hung)
	<-over
	body := string(got.Reply(hooks.Refuse(err)).Body)
	if !errors.Is(err, errNoFiles) || got.Request.Harmless || !strings.Contains(body, `"deny"`) || !strings.Contains(body, "in time") {
		t.Errorf("%v: %s", err, body)
	}
	got, err = inTime(time.Minute, call, func(c *hooks.Call) error { c.Request.Harmless = true; return nil })
	if err != nil || !got.Request.Harmless {
		t.Errorf("in time: %v", err)
	}
}
