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

// Each part passes one of these before it is used. They return what they are given; crash tests set others.
var (
	hookStore    = func(s engine.Store) engine.Store { return s }
	hookSessions = func(s runtime.Store) runtime.Store { return s }
	hookAdmin    = func(a *admin.Connector) connectors.Connector { return a }
	hookTerminal = func(t *terminal.Terminal) connectors.Connector { return t }
	hookTelegram = func(t *telegram.Connector) connectors.Connector { return t }
	hookWhatsApp = func(w *whatsapp.Connector) connectors.Connector { return w }
)
