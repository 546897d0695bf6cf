package tools

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/daycared/daycared/internal/own"
)

// TestAWorkspaceThatDoesNotAnswer: no tool runs there, at the start or later, and each says why.
func TestAWorkspaceThatDoesNotAnswer(t *testing.T) {
	_, p := tempFiles(t, map[string]string{"ws/a": "one"})
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		defer close(answers)
		for range 4 {
			_ = own.Do(p.Workspace, func() error { <-answers; return nil })
		}
		const silent = ": its file system does not answer"
		for name, in := range map[string]args{
			"read_file": {"path": "a"}, "list_files": {}, "search_files": {"pattern": "x"}, "write_file": {"path": "a", "content": "x"},
			"run_command": {"command": "true"},
		} {
			if _, err := tool(t, name).Plan(t.Context(), p, in.json(t)); err == nil || err.Error() != p.Workspace+silent {
				t.Errorf("%s is planned: %v", name, err)
			}
			tool(t, name).Run(t.Context(), p, in.json(t), Plan{}).says(t, true, p.Workspace+silent)
		}
		if _, err := (Workspace{}).In(p.Workspace).Held(); err == nil ||
			err.Error() != "open the workspace when daycared starts: "+p.Workspace+silent+"; restart daycared when it does" {
			t.Errorf("a workspace that does not answer at the start: %v", err)
		}
	})
}

// TestLinksThatDoNotAnswer: what is changed could lie elsewhere, and four such looks block only changes.
func TestLinksThatDoNotAnswer(t *testing.T) {
	_, p := tempFiles(t, map[string]string{"ws/a": "one"})
	call(t, p, "read_file", args{"path": "a"}).says(t, false, "one")
	tag, err := p.tag("@write", "a")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		defer close(answers)
		for range 4 {
			_, _ = own.LookUpFor("writing in "+p.Workspace, "/", func() (int, error) { <-answers; return 0, nil })
		}
		if err := p.sameLinks(tag, Plan{}); !errors.Is(err, own.ErrSilent) {
			t.Errorf("its links are judged as %v", err)
		}
		if _, err := p.Held(); err != nil {
			t.Errorf("the workspace is judged as %v", err)
		}
	})
}

// TestALeftProcessIsToldOf, whatever ended its call.
func TestALeftProcessIsToldOf(t *testing.T) {
	for _, err := range []error{ErrLeft, errors.Join(context.DeadlineExceeded, ErrLeft), fmt.Errorf("read a: %w", ErrLeft)} {
		if o := failed(err); o.Left != Left(ErrLeft) || !o.Error || o.Text != err.Error() {
			t.Errorf("%v is told as %+v", err, o)
		}
	}
	if o := failed(context.DeadlineExceeded); o.Left != "" || o.Text != "it took too long, and was ended" {
		t.Errorf("another failure is told as %+v", o)
	}
}
