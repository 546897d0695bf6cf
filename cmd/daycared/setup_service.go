package main

import (
	"context"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// unit is a service of the user's own systemd.
const unit = `[Unit]
Description=daycared: people answer for their AI agents

[Service]
ExecStart=%s serve --config %s
Restart=always
RestartSec=2

[Install]
WantedBy=default.target
`

// plist is an agent of launchd.
const plist = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>daycared</string>
  <key>ProgramArguments</key>
  <array><string>%s</string><string>serve</string><string>--config</string><string>%s</string></array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><true/>
</dict>
</plist>
`

// service offers a file that has the daemon run whenever its user is there. It starts nothing.
func (s *steps) service(ctx context.Context) error {
	file, text, start := s.serviceFile()
	if file == "" {
		s.talk.say("The daemon of this question ends now. To run it: daycared serve --config %s", s.short(s.file))
		return nil
	}
	yes, err := s.talk.yes(ctx, "Write "+s.short(file)+", so that daycared runs whenever you are logged in?", false)
	if err != nil {
		return err
	}
	if !yes {
		s.talk.say("The daemon of this question ends now. To run it: daycared serve --config %s", s.short(s.file))
		return nil
	}
	if old, err := os.ReadFile(file); err == nil && string(old) != text {
		if yes, err = s.talk.yes(ctx, "There is such a file already, and it is another one. Replace it?", false); err != nil || !yes {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make the folder of the service: %w", err)
	}
	if err := writeWhole(file, []byte(text), 0o644); err != nil {
		return err
	}
	s.talk.say("Written. The daemon of this question ends now. To start the service: %s", start)
	return nil
}

// serviceFile is where the service of this machine's kind is described, how, and what starts it.
func (s *steps) serviceFile() (file, text, start string) {
	binary, err := os.Executable()
	home := s.cli.env("HOME")
	if err != nil || !filepath.IsAbs(home) {
		return "", "", ""
	}
	switch runtime.GOOS {
	case "linux":
		folder := s.cli.env("XDG_CONFIG_HOME")
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(home, ".config")
		}
		return filepath.Join(folder, "systemd", "user", "daycared.service"),
			fmt.Sprintf(unit, unitWord(binary), unitWord(s.file)), "systemctl --user enable --now daycared"
	case "darwin":
		file = filepath.Join(home, "Library", "LaunchAgents", "daycared.plist")
		return file, fmt.Sprintf(plist, html.EscapeString(binary), html.EscapeString(s.file)), "launchctl load -w " + file
	}
	return "", "", ""
}

// unitWord is a path as systemd reads one word of a command: in quotes, with its own signs doubled.
func unitWord(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(path) + `"`
}
