package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
)

// tapping is fay on Telegram.
type tapping struct {
	server *telegramtest.Server
	fay    *telegramtest.Person
	token  string
}

func onTelegram(b *behaviour) handset {
	s := telegramtest.New(b.t)
	h := &tapping{server: s, fay: s.Person(telegramtest.User{ID: 4242, FirstName: "Fay"}), token: filepath.Join(b.dir, "token")}
	b.must(os.WriteFile(h.token, []byte(s.Token()), 0o600))
	h.fay.Start("")
	return h
}

func (h *tapping) contact() string { return "telegram: 4242" }

func (h *tapping) channel() string {
	return fmt.Sprintf("telegram: {enabled: true, token_file: %s, api_url: %q}", h.token, h.server.URL())
}

// connected waits for the reply to Start.
func (h *tapping) connected(ctx context.Context) error {
	_, err := h.fay.Sees(ctx, func(telegramtest.Message) bool { return true })
	return err
}

func (h *tapping) buttons() bool { return true }

func (h *tapping) writes(text string) { h.fay.Writes(text) }

func (h *tapping) messages() (all []sight) {
	for _, m := range h.fay.Messages() {
		if !m.FromBot {
			continue
		}
		text := m.Text
		for _, row := range m.Keyboard {
			text += "\n"
			for i, button := range row {
				if i > 0 {
					text += " "
				}
				text += "[" + button.Text + "]"
			}
		}
		if m.ForceReply != nil {
			text += "\n(a reply is asked for)"
		}
		all = append(all, sight{id: strconv.Itoa(m.ID), text: text})
	}
	return all
}

func (h *tapping) answers(ctx context.Context, button, words string) (did, card, sees string, err error) {
	if button == "" {
		return h.inWords(words)
	}
	has := func(m telegramtest.Message) bool { return dataOf(m.Keyboard, button) != "" }
	m, err := h.fay.Sees(ctx, func(m telegramtest.Message) bool { return has(m) || dataOf(m.Keyboard, "⋯ More") != "" })
	if err == nil && !has(m) {
		h.fay.TapsData(m.ID, dataOf(m.Keyboard, "⋯ More"))
		m, err = h.fay.Sees(ctx, has)
	}
	if err != nil {
		return "", "", "", err
	}
	for _, b := range slices.Concat(m.Keyboard...) {
		if strings.Contains(b.Text, button) {
			button = b.Text
			break
		}
	}
	toast, err := h.fay.TapsData(m.ID, dataOf(m.Keyboard, button)).Toast(ctx)
	did = fmt.Sprintf("taps [%s]; Telegram tells her: %s", button, toast.Text)
	if card = strconv.Itoa(m.ID); strings.HasPrefix(button, "✏️") {
		card = "" // unchanged
	}
	return did, card, "", err
}

// inWords answers with the code of the latest card, or replies to the latest message if that asks for text.
func (h *tapping) inWords(words string) (did, card, sees string, err error) {
	all := h.fay.Messages()
	for _, m := range slices.Backward(all) {
		if len(m.Keyboard) == 0 {
			continue
		}
		card = strconv.Itoa(m.ID)
		if last := all[len(all)-1]; last.ForceReply != nil {
			h.fay.Replies(last.ID, words)
			return "replies: " + words, card, `^\S+ You [^\n]*$`, nil
		}
		words = strings.ReplaceAll(words, "CODE", codeIn(m.Text))
		h.fay.Writes(words)
		return "writes: " + words, card, `^\S+ You [^\n]*$`, nil
	}
	return "", "", "", fmt.Errorf("there is nothing to say %q to", words)
}

// codeIn is a card's code.
func codeIn(text string) string {
	if m := anyCode.FindStringSubmatch(text); m != nil {
		return m[2]
	}
	return "CODE"
}

// wording is fay on WhatsApp, which has no buttons.
type wording struct {
	server *whatsapptest.Server
	fay    *whatsapptest.Person
}

func onWhatsApp(b *behaviour) handset {
	h := &wording{server: whatsapptest.New(b.t)}
	h.fay = h.server.Person("491700000001", "Fay")
	b.env = []string{whatsappAddr + "=" + h.server.Addr(), whatsappRoot + "=" + whatsappRootKey()}
	b.must(makeDataDir(filepath.Join(b.dir, "data"), os.Getuid()))
	_, err := whatsapp.Link(b.ctx, whatsapp.Linking{
		Path: filepath.Join(b.dir, "data", whatsappName), HTTP: h.server.Client(), Log: slog.New(slog.DiscardHandler),
	}, scanner{b.t, h.server.Phone()})
	b.must(err)
	return h
}

func (h *wording) contact() string { return `whatsapp: "+491700000001"` }

func (h *wording) channel() string { return "whatsapp: {enabled: true}" }

func (h *wording) connected(ctx context.Context) error { return h.server.Connected(ctx) }

func (h *wording) buttons() bool { return false }

func (h *wording) writes(text string) { h.fay.Says(text) }

func (h *wording) messages() (all []sight) {
	by := h.server.Number()
	for _, m := range h.fay.Messages() {
		switch {
		case m.From == by:
			all = append(all, sight{id: m.ID, text: m.Text})
		case m.Reactions[by] != "":
			all = append(all, sight{m.ID, m.Reactions[by] + " on: " + m.Text, true})
		}
	}
	return all
}

func (h *wording) answers(ctx context.Context, _, words string) (did, card, sees string, err error) {
	by := h.server.Number()
	m, err := h.fay.Gets(ctx, func(m whatsapptest.Message) bool { return m.From == by && codeIn(m.Text) != "CODE" })
	if err != nil {
		return "", "", "", err
	}
	words = strings.ReplaceAll(words, "CODE", codeIn(m.Text))
	h.fay.Says(words)
	return "writes: " + words, m.ID, " on: " + regexp.QuoteMeta(words), nil
}
