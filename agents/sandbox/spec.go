package sandbox

import (
	"encoding/json"
	"fmt"
)

// spec is what a process of ours is told when it is executed again: over a descriptor, never in arguments or environment,
// which others can read.
type spec struct {
	Read, Write []string
	Network     bool
	Off         bool // no walls

	Dir, Home string
	Env       []string
	Argv      []string
	Scratch   string // where to make the scratch folder; for the command, that folder

	Operation string
	Input     json.RawMessage
}

func (s *Sandbox) spec(w Walls) spec {
	return spec{
		Read: w.Read, Write: w.Write, Network: w.Network, Off: s.off, Dir: w.Dir, Home: w.Home, Env: w.Env, Scratch: s.scratch,
	}
}

// environ is a command's whole environment.
func (s spec) environ() []string {
	home := s.Home
	if home == "" {
		home = s.Scratch
	}
	return append([]string{"PATH=" + Path, "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + s.Scratch}, s.Env...)
}

// dir is where a command starts.
func (s spec) dir() string {
	if s.Dir != "" {
		return s.Dir
	}
	return s.Scratch
}

func (s spec) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write what the sandbox is to do: %w", err)
	}
	return text, nil
}

func decode(text []byte) (s spec, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read what the sandbox is to do: %w", err)
	}
	return s, nil
}
