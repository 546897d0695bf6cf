package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// TestOneRequestIsFewTransactions counts what the daemon does with its store from a question to the told answer, over both sockets and
// with a reader of events: two commits, no read, and at most 36 KB of the log. The first request is not counted, since it reads what is
// in memory afterwards.
func TestOneRequestIsFewTransactions(t *testing.T) {
	l := newLoop(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	l.parts.people = []string{"{name: fay, user: " + strconv.Quote(me.Username) + "}"}
	l.parts.routes = []string{"{ask: [fay]}"}
	counted := filepath.Join(l.dir, "counted")
	l.env = []string{"DAYCARED_COUNT=" + counted}
	l.begin()

	asker := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(l.dir, "agent"))
	}}}
	defer asker.CloseIdleConnections()
	created, used := make(chan permissions.ID), make(chan permissions.ID)
	follower := admin.NewClient(filepath.Join(l.dir, "admin"), filepath.Join(l.dir, "data", "admin.key"))
	defer follower.Close()
	go func() {
		_ = follower.Events(l.ctx, 0, func(e wire.Event) error { // it ends with the test
			at := map[permissions.Type]chan permissions.ID{permissions.RequestCreated: created, permissions.RequestUsed: used}[e.Type]
			if at != nil {
				select {
				case at <- *e.Request:
				case <-l.ctx.Done():
				}
			}
			return nil
		})
	}()
	one := func() {
		t.Helper()
		answered := make(chan error, 1)
		go func() {
			body := strings.NewReader(`{"kind": "permission", "permissions": ["@network"], "reason": "to count", "wait": "30s"}`)
			reply, err := asker.Post("http://localhost/v1/requests", "application/json", body)
			if err == nil {
				text, unread := io.ReadAll(reply.Body)
				_ = reply.Body.Close()
				if err = unread; reply.StatusCode != http.StatusOK {
					err = fmt.Errorf("%s: %s", reply.Status, text)
				}
			}
			answered <- err
		}()
		var id permissions.ID
		select {
		case id = <-created:
		case err := <-answered:
			t.Fatal("answered unasked", err)
		}
		decision := connectors.Decision{Request: id, Answer: permissions.Allow(permissions.Once)}
		if _, err := l.people.OnPermission(l.ctx, decision); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		<-used
	}
	one()
	reads, commits, size := costs(t, counted, l.dir)
	const n = 10
	for range n {
		one()
	}
	r, c, s := costs(t, counted, l.dir)
	if r -= reads; r > 0 {
		t.Errorf("%d read transactions for %d requests, want none", r, n)
	}
	if c -= commits; c != 2*n {
		t.Errorf("%d commits for %d requests, want two each", c, n)
	}
	if s = (s - size) / n; s == 0 || s > 36_000 {
		t.Errorf("%d bytes written for each request, want at most 36,000", s)
	}
}

// costs returns how many read transactions and commits a daemon has counted, and how long the log of its store is.
func costs(t *testing.T, counted, dir string) (reads, commits int, size int64) {
	t.Helper()
	text, err := os.ReadFile(counted)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Stat(filepath.Join(dir, "data", "daycared.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "read\n"), strings.Count(string(text), "group.after\n"), log.Size()
}
