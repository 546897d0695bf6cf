package whatsapptest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// violated waits for a violation that has a text in it.
func violated(t *testing.T, s *Server, text string) {
	t.Helper()
	err := s.wait(within(t), func() bool { return strings.Contains(strings.Join(s.violations, "\n"), text) })
	if err != nil {
		t.Errorf("no violation %q among %q", text, s.Violations())
	}
}

// inner sends what a client never would.
func (c *client) inner() *whatsmeow.DangerousInternalClient {
	return c.DangerousInternals() //nolint:staticcheck // it is deprecated as dangerous, which is what is wanted here
}

// What WhatsApp does not know is told, and refused where there is an answer.
func TestStrict(t *testing.T) {
	s := lenient(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	inner := c.inner()
	iq := func(space string, kind whatsmeow.DangerousInfoQueryType, content ...binary.Node) error {
		_, err := inner.SendIQ(within(t), whatsmeow.DangerousInfoQuery{
			Namespace: space, Type: kind, To: types.ServerJID, Content: content,
		})
		return err
	}
	if err := iq("w:nonsense", "get", binary.Node{Tag: "x"}); err == nil {
		t.Error("a query that nobody knows was answered")
	}
	violated(t, s, "w:nonsense")
	if err := iq("encrypt", "set", binary.Node{Tag: "registration", Content: []byte{1, 2, 3, 4}}); err == nil {
		t.Error("keys that are none were taken")
	}
	violated(t, s, "the keys of the device")
	if _, err := c.GetUserInfo(within(t), []types.JID{fay.JID()}); err != nil {
		t.Error(err)
	}
	for text, node := range map[string]binary.Node{
		"<nonsense": {Tag: "nonsense"},
		"a state":   {Tag: "chatstate", Attrs: binary.Attrs{"to": fay.LID()}, Content: []binary.Node{{Tag: "sleeping"}}},
		"a receipt": {Tag: "receipt", Attrs: binary.Attrs{"to": fay.LID(), "id": "X", "type": "nonsense"}},
		"a message to 1@newsletter": {Tag: "message", Attrs: binary.Attrs{
			"to": types.NewJID("1", types.NewsletterServer), "id": "Y",
		}},
		"without an id":         {Tag: "message", Attrs: binary.Attrs{"to": fay.LID()}},
		"for none of their dev": {Tag: "message", Attrs: binary.Attrs{"to": fay.LID(), "id": "Z"}},
	} {
		if err := inner.SendNode(within(t), node); err != nil {
			t.Fatal(err)
		}
		violated(t, s, text)
	}
	if _, err := c.SendMessage(within(t), fay.JID(), message(strings.Repeat("ä", longest+1))); err != nil {
		t.Error(err)
	}
	violated(t, s, "65537 characters")
	if got := fay.Messages(); len(got) != 1 {
		t.Errorf("fay sees %d messages", len(got))
	}
}

func TestStrictBeforeLogin(t *testing.T) {
	s := lenient(t)
	c := newClient(t, s)
	c.offered()
	inner := c.inner()
	if _, err := inner.SendIQ(within(t), whatsmeow.DangerousInfoQuery{
		Namespace: "passive", Type: "set", To: types.ServerJID, Content: []binary.Node{{Tag: "active"}},
	}); err == nil {
		t.Error("a client that is not linked was let in")
	}
	violated(t, s, "has not logged in asks")
	for _, tag := range []string{"message", "receipt"} {
		if err := inner.SendNode(within(t), binary.Node{Tag: tag, Attrs: binary.Attrs{"id": "X", "to": types.ServerJID}}); err != nil {
			t.Fatal(err)
		}
		violated(t, s, "sends <"+tag)
	}
	if err := c.SetPassive(within(t), true); err == nil {
		t.Error("a client that is not linked was let in")
	}
}

func TestStrictHTTP(t *testing.T) {
	s := lenient(t)
	web := s.Client()
	defer web.CloseIdleConnections()
	get := func(method, address string, body io.Reader) int {
		t.Helper()
		q, err := http.NewRequestWithContext(within(t), method, address, body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := web.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for want, call := range map[int]func() int{
		404: func() int { return get("GET", "https://example.com/", nil) },
		401: func() int {
			return get("POST", "https://"+mediaHost+"/mms/document/x?auth=none", strings.NewReader("x"))
		},
		400: func() int {
			return get("POST", "https://"+mediaHost+"/mms/document/x?auth="+mediaAuth, strings.NewReader("x"))
		},
		200: func() int { return get("GET", "https://web.whatsapp.com", nil) },
	} {
		if got := call(); got != want {
			t.Errorf("answered %d, want %d", got, want)
		}
	}
	if got := get("GET", "https://"+mediaHost+"/v/nothing", nil); got != http.StatusNotFound {
		t.Errorf("a file that is not there: %d", got)
	}
	violated(t, s, "GET of https://example.com/")
	violated(t, s, "an upload to")

	ws, _, err := websocket.Dial(within(t), "wss://web.whatsapp.com/ws/chat", &websocket.DialOptions{HTTPClient: web})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.CloseNow() }()
	if err := ws.Write(within(t), websocket.MessageBinary, []byte("HTTP/1.1")); err != nil {
		t.Fatal(err)
	}
	violated(t, s, "a handshake")
}

func TestStrictDocuments(t *testing.T) {
	s := lenient(t)
	fay := s.Person(fayNumber, "Fay")
	c := linked(t, s)
	up, err := c.Upload(within(t), []byte("details"), whatsmeow.MediaDocument)
	if err != nil {
		t.Fatal(err)
	}
	good := &waE2E.DocumentMessage{
		DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256,
		FileLength: &up.FileLength, FileName: proto.String("a.txt"),
	}
	for text, spoil := range map[string]func(*waE2E.DocumentMessage){
		"it is not there":            func(d *waE2E.DocumentMessage) { d.DirectPath = proto.String("/v/nothing") },
		"it was changed":             func(d *waE2E.DocumentMessage) { d.MediaKey = bytes.Repeat([]byte{1}, 32) },
		"is not what the message sa": func(d *waE2E.DocumentMessage) { d.FileLength = proto.Uint64(1) },
	} {
		bad := proto.CloneOf(good)
		spoil(bad)
		c.sends(fayNumber, &waE2E.Message{DocumentMessage: bad})
		violated(t, s, text)
	}
	if all := fay.Messages(); len(all) != 3 || all[0].Document != nil {
		t.Errorf("fay sees %+v", all)
	}
	s.FailMedia(1, http.StatusNotFound)
	id := fay.SendsDocument(Document{Name: "b.txt", Bytes: []byte("x")}, "")
	if got, err := c.Download(within(t), c.gets(id).Message.GetDocumentMessage()); err == nil {
		t.Errorf("downloaded %q", got)
	}
}

func TestServe(t *testing.T) {
	if s, err := Serve(Options{Number: "+49 170"}); err == nil {
		t.Errorf("a number with signs was taken: %+v", s)
	}
	s, err := Serve(Options{Number: "4930123456"})
	if err != nil || s.Number() != "4930123456" || RootKey() != whatsmeow.WACertPubKey {
		t.Fatalf("%+v, %v", s, err)
	}
	before := s.Addr()
	s.Close()
	if err := s.Up(); err != nil || s.Addr() != before {
		t.Errorf("up again at %s, %v", s.Addr(), err)
	}
	if err := s.Up(); err != nil {
		t.Error(err)
	}
	s.Close()
	s.Close()
}
