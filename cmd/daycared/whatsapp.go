package main

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/whatsapp"
)

// whatsappName is the file of the linked account, in the data directory.
const whatsappName = "whatsapp.db"

// whatsappHTTP leads to WhatsApp; nil is the way that everybody goes. Builds for tests lead elsewhere.
var whatsappHTTP = func() *http.Client { return nil }

// whatsappConnector makes the connector that the configuration asks for, or none.
func whatsappConnector(cfg *config.Config, paths config.Paths, log *slog.Logger) *whatsapp.Connector {
	on := cfg.Connectors.WhatsApp
	if !on.Enabled {
		return nil
	}
	host, _ := os.Hostname() // without it, people are told "here"
	client := whatsappHTTP()
	c := whatsapp.New(whatsapp.Options{
		Path: filepath.Join(paths.DataDir, whatsappName), Number: on.Phone, AutoVersion: on.AutoVersion, Host: host, HTTP: client, Now: time.Now,
		Log: log.With("connector", whatsapp.Name),
	})
	if client != nil {
		c.Unpace()
	}
	return c
}
