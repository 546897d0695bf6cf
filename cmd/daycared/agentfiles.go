package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// agentFolders refuses what agents of ours are given of the daemon's own files, or around them. A link counts as what it
// leads to.
func agentFolders(cfg *config.Config, own []string) error {
	for i, a := range cfg.Agents {
		at := fmt.Sprintf("agents.%d", i)
		type list struct {
			key     string
			folders []string
		}
		given := []list{{"read", a.Read}, {"write", a.Write}}
		if a.Workspace != "" {
			given = append(given, list{"workspace", []string{a.Workspace}})
		}
		for j, s := range a.MCP {
			mcp := fmt.Sprintf("mcp.%d.", j)
			given = append(given, list{mcp + "read", s.Read}, list{mcp + "write", s.Write})
		}
		for _, l := range given {
			for _, folder := range l.folders {
				if touched, ok := touches(folder, own); ok {
					return fmt.Errorf("%s: agents.%s: %s covers or lies in daycared's own %s, which %s is not given; name another folder",
						cfg.Place(at+"."+l.key), l.key, folder, touched, a.Name)
				}
			}
		}
	}
	return nil
}

// touches finds one of the daemon's own files that a folder, or what it leads to, holds or lies in.
func touches(folder string, own []string) (string, bool) {
	for _, name := range []string{folder, resolved(folder)} {
		tag, err := permissions.ParseTag("@read:" + name)
		for _, file := range own {
			if err != nil || tag.Touches(file) { // what cannot be judged is not given
				return file, true
			}
		}
	}
	return "", false
}

// resolved is what a path leads to, as far as it is there already.
func resolved(path string) string {
	for there, rest := path, ""; ; there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest) {
		if target, err := filepath.EvalSymlinks(there); err == nil {
			return filepath.Join(target, rest)
		}
		if there == filepath.Dir(there) {
			return path
		}
	}
}

// atConsole refuses agents that are talked to in the terminal by somebody whose terminal it is not.
func atConsole(cfg *config.Config, s engine.Settings) error {
	operator := s.Operator().Name
	for i, a := range cfg.Agents {
		if a.Connector == terminal.Name && a.Person != "" && a.Person != operator {
			return fmt.Errorf("%s: %s is %s's, and the daemon's own console is %s's; write another connector, or run the daemon as %[3]s",
				cfg.Place(fmt.Sprintf("agents.%d.person", i)), a.Name, a.Person, operator)
		}
	}
	return nil
}

// agentKey reads the key of an agent's model from its file, or from the service's credentials; empty where it needs none.
// No error holds any of it.
func (c *CLI) agentKey(a config.Agent) (models.Key, error) {
	file := a.Model.APIKeyFile
	if folder := c.env("CREDENTIALS_DIRECTORY"); file == "" && folder != "" && a.Model.Provider != config.Script {
		file = filepath.Join(folder, a.Model.Credential)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			file = ""
		}
	}
	switch {
	case file == "" && (a.Model.Provider == config.Script || a.Model.BaseURL != ""):
		return "", nil
	case file == "":
		return "", fmt.Errorf("agent %s: model.api_key_file is empty, and there is no credential %s; "+
			"put the key that %s gave you into a file of mode 0600 and name it there", a.Name, a.Model.Credential, a.Model.Provider)
	case a.Model.KeyInTheClear():
		return "", fmt.Errorf("agent %s: model.base_url would send the key in the clear; write https, or take the key away", a.Name)
	}
	key, err := readSecret(file, "the key that "+a.Model.Provider+" gave you")
	if err != nil {
		return "", fmt.Errorf("agent %s: model.api_key_file: %w", a.Name, err)
	}
	odd := func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }
	if len(key) > maxSecret || strings.ContainsFunc(key, odd) {
		return "", fmt.Errorf("agent %s: model.api_key_file: what %s holds is no key; write it alone, on one line", a.Name, file)
	}
	return models.Key(key), nil
}

// agentInstructions are what an agent's model is told first.
func agentInstructions(a config.Agent) (string, error) {
	if a.InstructionsFile == "" {
		return a.Instructions, nil
	}
	text, err := os.ReadFile(a.InstructionsFile)
	if err != nil {
		return "", fmt.Errorf("agent %s: read its instructions: %w", a.Name, err)
	}
	if err := config.CheckWords(string(text)); err != nil {
		return "", fmt.Errorf("agent %s: %s: %w", a.Name, a.InstructionsFile, err)
	}
	return string(text), nil
}
