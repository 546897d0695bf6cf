package whatsapp

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"

	"go.mau.fi/whatsmeow"

	"github.com/daycared/daycared/permissions"
)

// ref is what copies call a message of ours: the number that it was sent to, and its id.
type ref struct{ number, id string }

func (r ref) String() string { return r.number + "/" + r.id }

func parseRef(text string) (r ref, err error) {
	number, id, ok := strings.Cut(text, "/")
	if !ok || !strings.HasPrefix(number, "+") || id == "" {
		return r, errors.New("this is no message of WhatsApp's")
	}
	return ref{number, id}, nil
}

// randomBytes makes an id of ours as long as those of WhatsApp's own client.
const randomBytes = 4

// newID names a message of ours before it is sent, in the form of WhatsApp's own client. It holds the code of the request
// that it is about, if it is, by which a late answer to it finds that; what decides is compared with the copy.
func newID(code string) string {
	var about [permissions.CodeLength]byte
	var random [randomBytes]byte
	copy(about[:], code)
	_, _ = rand.Read(random[:]) // never fails
	if code == "" {
		_, _ = rand.Read(about[:])
		about[0] |= 0x80 // as no code begins
	}
	return whatsmeow.WebMessageIDPrefix + strings.ToUpper(hex.EncodeToString(append(about[:], random[:]...)))
}

// codeOf is the code in an id; empty for a message that is about no request, or none of ours.
func codeOf(id string) string {
	rest, ours := strings.CutPrefix(id, whatsmeow.WebMessageIDPrefix)
	raw, err := hex.DecodeString(rest)
	if !ours || err != nil || len(raw) != permissions.CodeLength+randomBytes {
		return ""
	}
	code := string(raw[:permissions.CodeLength])
	if _, known := (permissions.Coder{}).Decode(code); !known {
		return ""
	}
	return code
}
