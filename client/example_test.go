package client_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// daemon serves agents at a socket until stop is called. Fay answers the first question.
func daemon(answer permissions.Answer) (socket string, stop func()) {
	folder, err := os.MkdirTemp("", "daycared")
	if err != nil {
		panic(err)
	}
	socket = filepath.Join(folder, "agent.sock")
	env, err := wiretest.OpenEnv(folder)
	if err != nil {
		panic(err)
	}
	s := api.New(api.Options{Requests: env, Socket: socket, Log: wiretest.Quiet})
	if err := s.Listen(); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served, answered := make(chan error, 1), make(chan struct{})
	go func() { served <- s.Run(ctx) }()
	go func() {
		defer close(answered)
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for range look.C {
			for _, id := range env.PendingIDs() {
				if env.Waiters(id) > 0 {
					_, _ = env.Decide(id, answer, "")
					return
				}
			}
		}
	}()
	return socket, func() {
		<-answered
		cancel()
		<-served
		_ = env.Store.Close()
		_ = os.RemoveAll(folder)
	}
}

func ExampleClient_Ask() {
	socket, stop := daemon(permissions.Allow(permissions.Once))
	defer stop()
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	answer, err := c.Ask(context.Background(), []string{"@write:/srv/www"}, "deploy v42", client.Question{Key: "deploy-v42"})
	if err != nil || !answer.Yes {
		fmt.Println("not deployed:", answer.Text, err)
		return
	}
	fmt.Println(answer.Text)
	fmt.Println("decided by", answer.Standing.Request.DecidedBy)
	// Output:
	// Permission granted for write access to /srv/www.
	// decided by fay
}

func ExampleClient_Confirm() {
	socket, stop := daemon(permissions.Deny)
	defer stop()
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	answer, err := c.Confirm(context.Background(), "Publish the release?", client.Question{Details: "v42, 3 files"})
	fmt.Println(answer.Yes, answer.Text, err)
	// Output: false Denied. <nil>
}

func ExampleClient_Choose() {
	socket, stop := daemon(permissions.Choose(2))
	defer stop()
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	answer, err := c.Choose(context.Background(), "Where does it go?", []string{"the blog", "the list"}, client.Question{})
	fmt.Println(answer.Yes, answer.Text, err)
	// Output: true the list <nil>
}
