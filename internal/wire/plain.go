package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Plain rewrites an error of the network, of a file or of a program for models and people, without Go's terms. It
// matches what err matches. Our own errors and context errors stay as they are.
func Plain(err error) error {
	_, done := errors.AsType[*plain](err)
	if err == nil || done || errors.Is(err, context.Canceled) {
		return err
	}
	if text := inWords(err); text != err.Error() {
		return &plain{text, err}
	}
	return err
}

type plain struct {
	text string
	err  error
}

func (p *plain) Error() string { return p.text }
func (p *plain) Unwrap() error { return p.err }

func inWords(err error) string {
	late, isLate := errors.AsType[net.Error](err)
	if name, is := errors.AsType[*net.DNSError](err); is {
		if name.IsNotFound {
			return fmt.Sprintf("the host %s is not known", name.Name)
		}
		return fmt.Sprintf("the name %s cannot be looked up just now", name.Name)
	}
	if c, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return untrustedFor(c)
	}
	_, isTLS := errors.AsType[tls.RecordHeaderError](err)
	for _, known := range []struct {
		is   bool
		text string
	}{
		{errors.Is(err, syscall.ECONNREFUSED), "the connection was refused"},
		{errors.Is(err, syscall.ENETUNREACH), "it cannot be reached: there is no network"},
		{errors.Is(err, syscall.EHOSTUNREACH), "it cannot be reached from here"},
		{errors.Is(err, context.DeadlineExceeded), "it did not answer in time"},
		{isLate && late.Timeout(), "it did not answer in time"},
		{errors.Is(err, syscall.ECONNRESET), "the connection was cut off"},
		{errors.Is(err, syscall.EPIPE), "the connection was cut off"},
		{errors.Is(err, io.ErrUnexpectedEOF), "the connection ended before the answer was whole"},
		{errors.Is(err, http.ErrSchemeMismatch), "it answers by http, not by https"},
		{isTLS, noTLS},
		{errors.Is(err, io.EOF), "the connection ended without an answer"},
		{errors.Is(err, exec.ErrNotFound), "there is no such program"},
	} {
		if known.is {
			return known.text
		}
	}
	return bareWords(err)
}

// untrustedFor is why a certificate is rejected.
func untrustedFor(err *tls.CertificateVerificationError) string {
	_, another := errors.AsType[x509.HostnameError](err)
	invalid, is := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case another:
		return "its certificate is for another name"
	case is && invalid.Reason == x509.Expired:
		return "its certificate has expired, or does not hold yet"
	}
	return "its certificate is signed by nobody who is trusted here"
}

const noTLS = "no secure connection can be made"

// bareWords is an error without what Go adds: the failed call, and a name that the reader knows.
func bareWords(err error) string {
	for wrapped := true; wrapped; {
		switch err.(type) { //nolint:errorlint // what is around these is ours
		case *url.Error, *net.OpError, *os.SyscallError, *fs.PathError, *os.LinkError, *exec.Error:
			err = errors.Unwrap(err)
		default:
			wrapped = false
		}
	}
	text := err.Error()
	if text == "path escapes from parent" {
		return "it leads out of its folder"
	}
	for _, library := range []string{"http: ", "http2: ", "net/http: ", "malformed ", "gzip: ", "flate: ", "net: ", "bufio: "} {
		if strings.HasPrefix(text, library) {
			return "what it answers is not what a web server answers"
		}
	}
	for _, library := range []string{"tls: ", "remote error: ", "local error: ", "x509: "} {
		if strings.HasPrefix(text, library) {
			return noTLS
		}
	}
	return text
}
