package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// seal makes what a client brings back after a dialog something that only we can have given it, for that question of that
// caller: a dialog that was never asked for answers nothing. Its key is as old as the process; after a restart the question
// is simply shown again.
type seal struct{ key []byte }

func newSeal() seal {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return seal{key}
}

// of is the sealed id of a request.
func (s seal) of(id permissions.ID, about question) string {
	return string(id) + "." + base64.RawURLEncoding.EncodeToString(s.sum(id, about))
}

// open is the id that was sealed for that question; ok is false for anything else.
func (s seal) open(sealed string, about question) (id permissions.ID, ok bool) {
	name, sum, _ := strings.Cut(sealed, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if id = permissions.ID(name); err != nil || !hmac.Equal(given, s.sum(id, about)) {
		return "", false
	}
	return id, true
}

func (s seal) sum(id permissions.ID, about question) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(string(id) + "\x00" + about.caller + "\x00"))
	h.Write(about.digest[:])
	return h.Sum(nil)
}
