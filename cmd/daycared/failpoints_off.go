//go:build !failpoints

package main

import (
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/telegram"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/engine"
)

// In an ordinary build the parts are what they are; see failpoints.go.

func hookStore(s engine.Store) engine.Store                   { return s }
func hookSessions(s runtime.Store) runtime.Store              { return s }
func hookAdmin(a *admin.Connector) connectors.Connector       { return a }
func hookTerminal(t *terminal.Terminal) connectors.Connector  { return t }
func hookTelegram(t *telegram.Connector) connectors.Connector { return t }
func hookWhatsApp(w *whatsapp.Connector) connectors.Connector { return w }
