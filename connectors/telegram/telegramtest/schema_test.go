package telegramtest

import (
	"strings"
	"testing"
)

func TestEveryMethodIsInTheSchema(t *testing.T) {
	s, err := loadSchema()
	if err != nil {
		t.Fatal(err)
	}
	all := methods()
	for _, m := range all {
		if s.params[m.name] == nil || s.results[m.name] == nil {
			t.Errorf("%s is not in the schema", m.name)
		}
	}
	if len(s.params) != len(all) || len(s.results) != len(all) {
		t.Errorf("%d methods, of which the schema has %d", len(all), len(s.params))
	}
}

func TestRequestsAreValidated(t *testing.T) {
	s := lenient(t)
	started(t, s)
	tests := []struct{ name, method, key, value, want string }{
		{"misspelt", "sendMessage", "disable_notificaton", "true", "disable_notificaton"},
		{"null", "sendMessage", "entities", "null", "got null, want array"},
		{"a text for a flag", "sendMessage", "disable_notification", "please", "want boolean"},
		{"a text for a number", "sendMessage", "message_thread_id", "one", "want integer"},
		{"unknown kind of update", "getUpdates", "allowed_updates", `["telepathy"]`, "/allowed_updates/0"},
		{"unknown entity", "sendMessage", "entities", `[{"type":"loud","offset":0,"length":1}]`, "/entities/0"},
		{"wrong style", "sendMessage", "reply_markup", `{"inline_keyboard":[[{"text":"a","callback_data":"b","style":"x"}]]}`, "style"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := len(s.Violations())
			call(t, s, test.method, "chat_id", "42", "text", "x", test.key, test.value)
			v := s.Violations()
			if len(v) != before+1 || v[before].What != test.method+" request" || !strings.Contains(v[before].Detail, test.want) {
				t.Errorf("violations: %+v", v[before:])
			}
		})
	}
}

// recorder is a test that is failed on purpose.
type recorder struct {
	testing.TB
	errors int
}

func (r *recorder) Errorf(string, ...any) { r.errors++ }

func TestEmissionsAreValidated(t *testing.T) {
	r := &recorder{TB: t}
	s, err := Serve(Options{TB: r})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.mu.Lock()
	s.emit("callback_query", callbackLife, object{"id": 1, "from": fayUser, "data": "x"})
	s.mu.Unlock()
	if v := s.Violations(); r.errors != 1 || len(v) != 1 || v[0].What != "callback_query update" ||
		!strings.Contains(v[0].Detail, "chat_instance") {
		t.Errorf("%d errors, violations: %+v", r.errors, v)
	}
	if err := s.schema.result("getMe", []byte(`{"id":1}`)); err == nil {
		t.Error("half a user is a result of getMe")
	}
}

func TestOptions(t *testing.T) {
	if _, err := Serve(Options{Token: "secret"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a token without form: %v", err)
	}
	s, err := Serve(Options{Token: "77:" + strings.Repeat("a", 35), Bot: User{Username: "own_bot"}, ReadsAll: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var me struct {
		User
		ReadsAll bool `json:"can_read_all_group_messages"`
	}
	if must(t, s, &me, "getMe"); me.ID != 77 || me.Username != "own_bot" || !me.ReadsAll {
		t.Errorf("it is %+v", me)
	}
	fay := s.Person(fayUser)
	g := s.Group("Ops", fay)
	g.AddsBot(fay)
	fay.In(g).Writes("chatter")
	if got := texts(getUpdates(t, s)); got != "chatter" {
		t.Errorf("it hears %q", got)
	}
	must(t, s, nil, "setMyDescription", "description", "asks before it acts")
}
