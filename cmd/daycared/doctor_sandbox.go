package main

import (
	"errors"
	"strings"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/cmd/daycared/config"
)

// examineSandbox says which promises of the sandbox this kernel holds, and whether anything can be run in it. Where the
// operator wants no walls, the configuration's warning has said all.
func examineSandbox(cfg *config.Config, own []string) []finding {
	if !cfg.Sandbox {
		return nil
	}
	level := "note" // until somebody needs it
	if len(cfg.Agents) > 0 {
		level = "wrong"
	}
	findings := promised(sandbox.Check(), level)
	if err := sandbox.New(sandbox.Options{Own: own}).Ready(); errors.Is(err, sandbox.ErrOwn) {
		findings = append(findings, saw(level, "no command of agents can run: "+err.Error(), "move it elsewhere"))
	}
	return findings
}

// promised tells the promises that hold in one line, and each of the others in one of its own.
func promised(promises []sandbox.Promise, level string) (findings []finding) {
	var held []string
	for _, p := range promises {
		if p.Holds {
			held = append(held, p.Name)
		}
	}
	if len(held) > 0 {
		findings = append(findings, saw("ok", "the kernel can hold commands of agents: "+strings.Join(held, ", "), ""))
	}
	for _, p := range promises {
		if !p.Holds {
			findings = append(findings, saw(level, "the kernel cannot hold commands of agents: "+p.Name+": "+p.Why+
				"; files and commands are refused to agents", "take Linux 6.12 or newer with Landlock; sandbox: off does without all of it"))
		}
	}
	return findings
}
