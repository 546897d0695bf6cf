package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
	token, err := c.telegramToken(cfg.Connectors.Telegram.TokenFile)
	if err != nil {
		return nil, err
	}
	return newBot(token, cfg.Connectors.Telegram.APIURL, log.With("connector", telegram.Name)), nil
}

// notToken says what keeps a text from being a bot token, and nothing of what it holds.
func notToken(text string) string {
	number, secret, _ := strings.Cut(text, ":")
	_, err := strconv.ParseUint(number, 10, 64)
	switch {
	case err != nil || number == text:
		return "BotFather's begins with digits and a colon"
	case len(secret) < 20:
		return fmt.Sprintf("what follows the colon is too short: it has %s, and BotFather's has 35",
			count(len(secret), "character", "characters"))
	}
	return "what follows the colon is 35 letters, digits, - and _"
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
		return "", fmt.Errorf("%swhat %s holds is no bot token: %s", key, file, notToken(token))
	}
	return telegram.Token(token), nil
}
