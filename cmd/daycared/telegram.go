package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/telegram"
)

// botToken is what BotFather gives out.
var botToken = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{20,100}$`)

// telegramConnector makes the connector that the configuration asks for, or none.
func (c *CLI) telegramConnector(cfg *config.Config, log *slog.Logger) (*telegram.Connector, error) {
	if !cfg.Connectors.Telegram.Enabled {
		return nil, nil
	}
	token, err := c.telegramToken(cfg.Connectors.Telegram.TokenFile, log)
	if err != nil {
		return nil, err
	}
	return newBot(token, cfg.Connectors.Telegram.APIURL, log.With("connector", telegram.Name)), nil
}

// newBot makes the connector of a bot.
func newBot(token telegram.Token, address string, log *slog.Logger) *telegram.Connector {
	host, _ := os.Hostname() // without it, people are told "here"
	return telegram.New(telegram.Options{Token: token, APIURL: address, Host: host, Now: time.Now, Log: log})
}

// telegramToken reads the bot's token from its file, or from the service's credentials. No error holds any of it.
func (c *CLI) telegramToken(file string, log *slog.Logger) (telegram.Token, error) {
	if folder := c.env("CREDENTIALS_DIRECTORY"); file == "" && folder != "" {
		file = filepath.Join(folder, "telegram.token")
	}
	if file == "" {
		return "", errors.New("connectors.telegram.token_file is empty, and there is no credential telegram.token; " +
			"put the token that BotFather gave you into a file of mode 0600 and name it there")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		var path *fs.PathError
		errors.As(err, &path)
		return "", fmt.Errorf("connectors.telegram.token_file: %s cannot be read (%w)", file, path.Err)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("others may read the bot's token; chmod 600 the file", "file", file)
	}
	token := strings.TrimSpace(string(text))
	if !botToken.MatchString(token) {
		return "", fmt.Errorf("connectors.telegram.token_file: what %s holds is no bot token; BotFather's begins with digits and a colon", file)
	}
	return telegram.Token(token), nil
}
