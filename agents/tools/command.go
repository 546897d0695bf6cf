package tools

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

type runCommand struct{ box *sandbox.Sandbox }

type commandInput struct {
	Command string   `json:"command" need:"yes" size:"1.." say:"a line for /bin/sh; it has no input"`
	Cwd     string   `json:"cwd" size:"1..4096" say:"the folder to start in: absolute, or relative to the workspace, which is the default"`
	Timeout int      `json:"timeout" size:"1..3600" default:"120" say:"seconds until it is killed with all that it started"`
	Network bool     `json:"network" default:"false" say:"whether it needs the network; people are asked for it"`
	Read    []string `json:"read" each:"1..4096" say:"files and folders outside the workspace that it reads; people are asked for them"`
	Write   []string `json:"write" each:"1..4096" say:"files and folders that it changes, as . for the workspace; people are asked for them"`
	Pause   bool     `json:"pause" default:"false" say:"show people the result, and go on when they say so"`
}

func (runCommand) spec() models.Tool {
	return models.Tool{Name: "run_command", Description: "Run a shell command. It reads the workspace, what " +
		"is granted, and the system's programs; it writes what is in write, and a scratch folder that is removed afterwards ($TMPDIR); it has " +
		"the network only with network: true. Nothing that it starts outlives it. Gives the exit code, and the beginning and the end of " +
		"what it writes."}
}

func (in commandInput) check() (commandInput, error) {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return in, errors.New("the command is empty")
	case strings.ContainsRune(in.Command, 0):
		return in, errors.New("the command holds a NUL")
	}
	return in, nil
}

func (in commandInput) tags(p Workspace) (tags []permissions.Tag, err error) {
	if _, err := p.Held(); err != nil {
		return nil, err
	}
	reads := in.Read
	if in.Cwd != "" {
		reads = append(slices.Clone(reads), in.Cwd)
	}
	for _, of := range []struct {
		verb  string
		paths []string
	}{{"@read", reads}, {"@write", in.Write}} {
		for _, name := range of.paths {
			t, err := p.tag(of.verb, name)
			if err != nil {
				return nil, err
			}
			tags = append(tags, t)
		}
	}
	if in.Network {
		tags = append(tags, permissions.Network)
	}
	return tags, nil
}

func (runCommand) plan(_ context.Context, p Workspace, in commandInput) (Plan, error) {
	tags, err := in.tags(p)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Needs: p.missing(tags...)}, nil
}

func (t runCommand) run(ctx context.Context, p Workspace, in commandInput, _ Plan) (Outcome, error) {
	walls, err := in.policy(p)
	if err != nil {
		return Outcome{}, err
	}
	o := t.execute(ctx, in, walls)
	if o.Error && !in.Network && slices.Contains(p.Tags, permissions.Network) {
		o.Text += "\nThis ran without the network, which you hold: say network: true."
	}
	return o, nil
}

// policy is the policy of one command: what is held, and the network only if the command asks for it.
func (in commandInput) policy(p Workspace) (sandbox.Policy, error) {
	tags, err := in.tags(p)
	if err == nil {
		err = p.requireTags(tags...)
	}
	if err != nil {
		return sandbox.Policy{}, err
	}
	w, err := p.policyFor(tags)
	if err != nil {
		return w, err
	}
	w.Network = in.Network
	if p.Workspace != "" {
		w.Dir = p.Workspace
		if slices.Contains(w.Write, w.Dir) { // keeps programs' own files between commands
			w.Home = w.Dir
		}
	}
	if in.Cwd != "" {
		t, err := p.tag("@read", in.Cwd)
		if err != nil {
			return w, err
		}
		w.Dir = t.Path()
	}
	return w, nil
}

func (t runCommand) execute(ctx context.Context, in commandInput, walls sandbox.Policy) Outcome {
	limit := time.Duration(in.Timeout) * time.Second
	running, stop := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer stop()
	cmd, release, err := t.box.Command(running, walls, "/bin/sh", "-c", in.Command)
	if err != nil {
		return failed(err)
	}
	var out, errs headTail
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = t.box.Run(running, walls, cmd, release)
	var exit *exec.ExitError
	if errors.Is(err, ErrLeft) {
		return failed(err)
	}
	if err != nil && cmd.ProcessState == nil && !errors.As(err, &exit) {
		return failed(fmt.Errorf("the command cannot be started: %w", wire.Plain(err)))
	}
	code := cmd.ProcessState.ExitCode()
	o := Outcome{
		Text: fmt.Sprintf("exit code %d", code), Error: code != 0 || running.Err() != nil, Exit: &code,
		Artifacts: []agents.Artifact{out.artifact(agents.ArtifactStdout), errs.artifact(agents.ArtifactStderr)},
	}
	switch {
	case ctx.Err() != nil:
		o.Text = "it was ended, with all that it started"
	case errors.Is(context.Cause(running), errTimeout):
		o.Text = fmt.Sprintf("it was killed after %s, with all that it started; give it more time with timeout", limit)
	}
	o.Text += out.modelText("stdout") + errs.modelText("stderr")
	if in.Pause {
		o.Pause = o.Text
	}
	return o
}

var errTimeout = errors.New("its time is over")
