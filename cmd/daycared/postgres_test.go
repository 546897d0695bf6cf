package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/internal/pgtest"
)

// Scripts may have a PostgreSQL of their own, which they stop and start:
//
//	postgresql new      start one; $URL is the address of its database
//	postgresql stop     stop it at once
//	postgresql start    start it again

type clusterKey struct{}

func postgresql(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: postgresql new|stop|start")
	}
	held, _ := ts.Value(clusterKey{}).(*[]*pgtest.Cluster) // see setup
	switch args[0] {
	case "new":
		c, err := pgtest.Start()
		ts.Check(err)
		ts.Defer(func() { _ = c.Close() }) // it ends with the tests
		*held = append(*held, c)
		ts.Setenv("URL", c.URL("postgres"))
	case "stop":
		ts.Check((*held)[len(*held)-1].Stop())
	case "start":
		ts.Check((*held)[len(*held)-1].Run())
	default:
		ts.Fatalf("usage: postgresql new|stop|start")
	}
}
