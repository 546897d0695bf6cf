package client

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/daycared/daycared/permissions"
)

// TestATokenFileThatHangs is reported after a while, however often it is read: its file system may never answer.
func TestATokenFileThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Options{URL: "https://daycared.example", TokenFile: "/mnt/token"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		answers := make(chan struct{})
		defer close(answers)
		c.readToken = func(string) (permissions.Secret, error) {
			<-answers
			return "", nil
		}
		for range maxReading + 1 {
			if err := c.Ready(context.Background()); err == nil || !strings.Contains(err.Error(), "its file system does not answer") {
				t.Fatalf("got %v", err)
			}
		}
	})
}
