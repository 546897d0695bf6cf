package api

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// certificate is the listener's, read again when its file has changed, so that a renewed one needs no restart. One that
// cannot be read leaves the old one in force.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	written time.Time // when the file was, that was last looked at
}

// openCertificate reads the certificate for the first time.
func openCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	loaded, err := LoadCertificate(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	c.current = loaded
	if info, err := os.Stat(certFile); err == nil {
		c.written = info.ModTime()
	}
	return c, nil
}

// LoadCertificate reads a certificate and its key. The error tells nothing of what the files hold.
func LoadCertificate(certFile, keyFile string) (*tls.Certificate, error) {
	loaded, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate %s and its key: %w", certFile, err)
	}
	return &loaded, nil
}

// get is the certificate in force.
func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.certFile)
	if err != nil || info.ModTime().Equal(c.written) {
		return c.current
	}
	loaded, err := LoadCertificate(c.certFile, c.keyFile)
	if err != nil { // its key may still be about to be written, so it is tried again
		c.log.Warn("the new certificate is refused and the old one stays", "err", err)
		return c.current
	}
	c.current, c.written = loaded, info.ModTime()
	c.log.Info("the certificate was read again", "not_after", loaded.Leaf.NotAfter)
	return c.current
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
	}
}

// names tells whether the certificate is for a host.
func (c *certificate) names(host string) bool {
	leaf := c.get().Leaf
	return !strings.Contains(host, "*") && leaf.VerifyHostname(bracketed(host)) == nil
}

// bracketed is how VerifyHostname wants an address that may be one of IPv6.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
