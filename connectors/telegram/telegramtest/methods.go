package telegramtest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode"
)

// methods are what the server can do, by name in lower case: the Bot API does not look at case.
func methods() map[string]method {
	all := map[string]method{}
	for name, run := range map[string]func(*Server, *query) (any, *failure){
		"getMe":                  (*Server).getMe,
		"getWebhookInfo":         (*Server).getWebhookInfo,
		"deleteWebhook":          (*Server).deleteWebhook,
		"setMyCommands":          (*Server).setMyCommands,
		"getMyCommands":          (*Server).getMyCommands,
		"deleteMyCommands":       (*Server).deleteMyCommands,
		"setMyDescription":       (*Server).setMyDescription,
		"sendMessage":            (*Server).sendMessage,
		"sendDocument":           (*Server).sendDocument,
		"sendChatAction":         (*Server).sendChatAction,
		"editMessageText":        (*Server).editMessageText,
		"editMessageReplyMarkup": (*Server).editMessageReplyMarkup,
		"deleteMessage":          (*Server).deleteMessage,
		"setMessageReaction":     (*Server).setMessageReaction,
		"answerCallbackQuery":    (*Server).answerCallbackQuery,
		"getChat":                (*Server).getChat,
		"getChatMember":          (*Server).getChatMember,
		"leaveChat":              (*Server).leaveChat,
		"getFile":                (*Server).getFile,
	} {
		all[strings.ToLower(name)] = method{name, func(s *Server, _ context.Context, q *query) (any, *failure) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return run(s, q)
		}}
	}
	all["getupdates"] = method{"getUpdates", (*Server).getUpdates} // waits, and locks by itself
	return all
}

func (s *Server) getMe(*query) (any, *failure) {
	return object{
		"id": s.bot.ID, "is_bot": true, "first_name": s.bot.FirstName, "username": s.bot.Username, "can_join_groups": true,
		"can_read_all_group_messages": s.readsAll, "supports_inline_queries": false, "can_connect_to_business": false,
		"has_main_web_app": false,
	}, nil
}

// Command is an entry of the bot's menu.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// Commands are what a person sees in the menu of a private chat with the bot, or the members of another chat in that.
func (s *Server) Commands(chat int64) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "all_group_chats"
	if c := s.chats[chat]; c != nil && c.kind == private {
		kind = "all_private_chats"
	}
	for _, scope := range []string{scopeName("chat", chat, 0), scopeName(kind, 0, 0), scopeName("default", 0, 0)} {
		if menu := s.commands[scope+" "]; len(menu) > 0 {
			return append([]Command(nil), menu...)
		}
	}
	return nil
}

func scopeName(kind string, chat, user int64) string {
	return kind + " " + strconv.FormatInt(chat, 10) + " " + strconv.FormatInt(user, 10)
}

// scope names where a menu is shown, with its language.
func (s *Server) scope(q *query) (string, *failure) {
	scope := struct {
		Type   string `json:"type"`
		ChatID int64  `json:"chat_id"`
		UserID int64  `json:"user_id"`
	}{Type: "default"}
	if _, err := q.decode("scope", &scope); err != nil {
		return "", badRequest("can't parse BotCommandScope: %v", err)
	}
	switch scope.Type {
	case "default", "all_private_chats", "all_group_chats", "all_chat_administrators":
	case "chat", "chat_administrators", "chat_member":
		if s.chats[scope.ChatID] == nil {
			return "", badRequest("chat not found")
		}
	default:
		return "", badRequest("can't parse BotCommandScope: unsupported type specified")
	}
	return scopeName(scope.Type, scope.ChatID, scope.UserID) + " " + q.values["language_code"], nil
}

func (s *Server) setMyCommands(q *query) (any, *failure) {
	scope, refused := s.scope(q)
	if refused != nil {
		return nil, refused
	}
	var menu []Command
	if _, err := q.decode("commands", &menu); err != nil {
		return nil, badRequest("can't parse commands JSON object")
	}
	if len(menu) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for i, c := range menu {
		menu[i].Command = strings.TrimPrefix(c.Command, "/")
		if name := menu[i].Command; name == "" || len(name) > 32 || strings.ContainsFunc(name, notInCommand) {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := units(c.Description); n == 0 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	s.commands[scope] = menu
	s.change()
	return true, nil
}

func notInCommand(r rune) bool {
	return r > unicode.MaxASCII || r != '_' && !unicode.IsLower(r) && !unicode.IsDigit(r)
}

func (s *Server) getMyCommands(q *query) (any, *failure) {
	scope, refused := s.scope(q)
	return append([]Command{}, s.commands[scope]...), refused
}

func (s *Server) deleteMyCommands(q *query) (any, *failure) {
	scope, refused := s.scope(q)
	delete(s.commands, scope)
	s.change()
	return true, refused
}

func (s *Server) setMyDescription(q *query) (any, *failure) {
	if units(q.values["description"]) > 512 {
		return nil, badRequest("DESCRIPTION_TOO_LONG")
	}
	s.description = q.values["description"]
	s.change()
	return true, nil
}

func (s *Server) getFile(q *query) (any, *failure) {
	d := s.files[q.values["file_id"]]
	if d == nil {
		return nil, badRequest("invalid file_id")
	}
	return object{
		"file_id": d.FileID, "file_unique_id": unique(d.FileID), "file_size": len(d.Bytes),
		"file_path": "documents/" + d.FileID,
	}, nil
}

// download serves a file that getFile told the path of.
func (s *Server) download(w http.ResponseWriter, path string) {
	s.mu.Lock()
	d := s.files[strings.TrimPrefix(path, "documents/")]
	s.mu.Unlock()
	if d == nil {
		write(w, json.RawMessage(nil), &failure{code: http.StatusNotFound, description: "Not Found"})
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(d.Bytes)
}
