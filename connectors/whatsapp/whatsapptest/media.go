package whatsapptest

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/util/cbcutil"
	"google.golang.org/protobuf/proto"
)

const (
	mediaHost = "mmg.whatsapp.net"
	mediaAuth = "test-media-auth"
	macLength = 10
)

// Document is a file that somebody sent.
type Document struct {
	Name, MIME string
	Bytes      []byte
}

func mediaConn() binary.Node {
	return binary.Node{
		Tag: "media_conn", Attrs: binary.Attrs{"auth": mediaAuth, "ttl": "300", "auth_ttl": "21600", "max_buckets": "12"},
		Content: []binary.Node{{Tag: "host", Attrs: binary.Attrs{"hostname": mediaHost}}},
	}
}

// upload takes an encrypted file, which is known by its hash.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	sealed, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if status := next(&s.faults.media); status != 0 {
		http.Error(w, http.StatusText(status), status)
		return
	}
	hash := sha256.Sum256(sealed)
	switch {
	case err != nil:
		return
	case r.URL.Query().Get("auth") != mediaAuth:
		http.Error(w, "not authorized", http.StatusUnauthorized)
		return
	case path.Dir(r.URL.Path) != "/mms/document" || path.Base(r.URL.Path) != base64.URLEncoding.EncodeToString(hash[:]):
		s.violate("an upload to %s", r.URL.Path)
		http.Error(w, "bad token", http.StatusBadRequest)
		return
	}
	direct := s.keep(sealed)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"url": "https://" + mediaHost + direct, "direct_path": direct, "handle": "",
	})
}

// keep keeps an encrypted file, and returns its path.
func (s *Server) keep(sealed []byte) string {
	hash := sha256.Sum256(sealed)
	name := "/v/t62.7119-24/" + hex.EncodeToString(hash[:8]) + ".enc"
	s.media[name] = sealed
	return name + "?ccb=11-4&oh=00"
}

func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	status, sealed := next(&s.faults.media), s.media[r.URL.Path]
	s.mu.Unlock()
	switch {
	case status != 0:
		http.Error(w, http.StatusText(status), status)
	case sealed == nil:
		http.NotFound(w, r)
	default:
		_, _ = w.Write(sealed)
	}
}

// open is a document of a message as the phone shows it, nil where it cannot be downloaded, decrypted and checked.
func (s *Server) open(doc *waE2E.DocumentMessage) *Document {
	name, _, _ := bytes.Cut([]byte(doc.GetDirectPath()), []byte("?"))
	plain, err := decryptMedia(s.media[string(name)], doc)
	if err != nil {
		s.violate("document %q: %v", doc.GetFileName(), err)
		return nil
	}
	return &Document{Name: doc.GetFileName(), MIME: doc.GetMimetype(), Bytes: plain}
}

func decryptMedia(sealed []byte, doc *waE2E.DocumentMessage) ([]byte, error) {
	whole := sha256.Sum256(sealed)
	if len(sealed) <= macLength || !bytes.Equal(whole[:], doc.GetFileEncSHA256()) {
		return nil, errors.New("it is not there, or is another one")
	}
	iv, key, macKey, err := mediaKeys(doc.GetMediaKey())
	if err != nil {
		return nil, err
	}
	sealed, mac := sealed[:len(sealed)-macLength], sealed[len(sealed)-macLength:]
	if !hmac.Equal(mac, mediaMAC(macKey, iv, sealed)) {
		return nil, errors.New("it was changed")
	}
	plain, err := cbcutil.Decrypt(key, iv, bytes.Clone(sealed))
	if err != nil {
		return nil, err
	}
	if hash := sha256.Sum256(plain); !bytes.Equal(hash[:], doc.GetFileSHA256()) || uint64(len(plain)) != doc.GetFileLength() {
		return nil, errors.New("it is not what the message says")
	}
	return plain, nil
}

func mediaKeys(secret []byte) (iv, key, macKey []byte, err error) {
	all, err := hkdf.Key(sha256.New, secret, nil, string(whatsmeow.MediaDocument), 112)
	if err != nil {
		return nil, nil, nil, err
	}
	return all[:16], all[16:48], all[48:80], nil
}

func mediaMAC(key, iv, sealed []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(iv)
	mac.Write(sealed)
	return mac.Sum(nil)[:macLength]
}

// SendsDocument sends a file with a caption, or none, and returns the message's id.
func (p *Person) SendsDocument(d Document, caption string) string {
	secret := random(32)
	iv, key, macKey, err := mediaKeys(secret)
	if err != nil {
		panic(err) // the lengths are ours
	}
	sealed, err := cbcutil.Encrypt(key, iv, bytes.Clone(d.Bytes))
	if err != nil {
		panic(err)
	}
	sealed = join(sealed, mediaMAC(macKey, iv, sealed))
	plainHash, hash := sha256.Sum256(d.Bytes), sha256.Sum256(sealed)
	p.server.mu.Lock()
	direct := p.server.keep(sealed)
	p.server.mu.Unlock()
	doc := &waE2E.DocumentMessage{
		URL: proto.String("https://" + mediaHost + direct), DirectPath: proto.String(direct), MediaKey: secret,
		FileEncSHA256: hash[:], FileSHA256: plainHash[:], FileLength: proto.Uint64(uint64(len(d.Bytes))),
		FileName: proto.String(d.Name), Mimetype: proto.String(d.MIME),
	}
	if caption == "" {
		return p.Sends(&waE2E.Message{DocumentMessage: doc})
	}
	doc.Caption = proto.String(caption)
	return p.Sends(&waE2E.Message{DocumentWithCaptionMessage: &waE2E.FutureProofMessage{Message: &waE2E.Message{DocumentMessage: doc}}})
}
