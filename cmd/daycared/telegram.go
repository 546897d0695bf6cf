package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
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
	token, err := c.telegramToken(cfg.Connectors.Telegram.TokenFile)
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
func (c *CLI) telegramToken(file string) (telegram.Token, error) {
	const key = "connectors.telegram.token_file: "
	if folder := c.env("CREDENTIALS_DIRECTORY"); file == "" && folder != "" {
		file = filepath.Join(folder, "telegram.token")
	}
	if file == "" {
		return "", errors.New(key + "it is empty, and there is no credential telegram.token; " +
			"put the token that BotFather gave you into a file of mode 0600 and name it there")
	}
	token, err := readSecret(file, "the token that BotFather gave you")
	switch {
	case err != nil:
		return "", fmt.Errorf("%s%w", key, err)
	case !botToken.MatchString(token):
		return "", fmt.Errorf("%swhat %s holds is no bot token; BotFather's begins with digits and a colon", key, file)
	}
	return telegram.Token(token), nil
}
