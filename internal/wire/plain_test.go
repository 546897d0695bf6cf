package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Go's words in network, file and program errors are replaced; our own errors are unchanged.
func TestPlainSaysNothingOfGo(t *testing.T) {
	_, missing := os.ReadFile(filepath.Join(t.TempDir(), "none"))
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	_, escaped := root.Open("../none")
	_, program := exec.LookPath("no-such-program-of-a-test")
	ours := errors.New("it is no text")
	around := func(err error) error { return &url.Error{Op: "Get", URL: "http://example.org/", Err: err} }
	dialed := func(err error) error { return around(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{dialed(&net.DNSError{Err: "no such host", Name: "example.org", IsNotFound: true}), "the host example.org is not known"},
		{dialed(&net.DNSError{Err: "server misbehaving", Name: "example.org"}), "the name example.org cannot be looked up just now"},
		{dialed(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "the connection was refused"},
		{dialed(os.NewSyscallError("connect", syscall.ENETUNREACH)), "it cannot be reached: there is no network"},
		{dialed(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "it cannot be reached from here"},
		{dialed(os.NewSyscallError("socket", syscall.EMFILE)), "too many open files"},
		{dialed(ours), "it is no text"},
		{around(context.DeadlineExceeded), "it did not answer in time"},
		{dialed(os.ErrDeadlineExceeded), "it did not answer in time"},
		{around(os.NewSyscallError("read", syscall.ECONNRESET)), "the connection was cut off"},
		{around(io.EOF), "the connection ended without an answer"},
		{io.ErrUnexpectedEOF, "the connection ended before the answer was whole"},
		{around(errors.New(`malformed HTTP response "x"`)), "what it answers is not what a web server answers"},
		{missing, "no such file or directory"}, {escaped, "it leads out of its folder"}, {program, "there is no such program"},
		{&os.LinkError{Op: "rename", Old: "a", New: "b", Err: fs.ErrPermission}, "permission denied"},
		{ours, "it is no text"}, {around(context.Canceled), around(context.Canceled).Error()},
	} {
		got := Plain(c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v: %v\nwant %s", c.err, got, c.want)
		}
		if again := Plain(fmt.Errorf("fetch x: %w", got)); got != c.err && again.Error() != "fetch x: "+c.want { //nolint:errorlint // the same
			t.Errorf("%v around it: %v", c.err, again)
		}
	}
	if Plain(nil) != nil {
		t.Error("nothing is an error")
	}
}

func TestPlainOfCertificatesAndOfOtherProtocols(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = nil
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	trusting, late := secure.Client(), secure.Client()
	named := trusting.Transport.(*http.Transport).Clone()
	named.TLSClientConfig.ServerName = "another.test"
	aged := late.Transport.(*http.Transport).Clone()
	aged.TLSClientConfig.Time = func() time.Time { return time.Now().AddDate(200, 0, 0) }
	old := secure.Client().Transport.(*http.Transport).Clone()
	old.TLSClientConfig.MaxVersion = tls.VersionTLS10
	for _, c := range []struct {
		client    *http.Client
		url, want string
	}{
		{&http.Client{}, secure.URL, "its certificate is signed by nobody who is trusted here"},
		{&http.Client{Transport: named}, secure.URL, "its certificate is for another name"},
		{&http.Client{Transport: aged}, secure.URL, "its certificate has expired, or does not hold yet"},
		{&http.Client{Transport: old}, secure.URL, noTLS},
		{&http.Client{}, strings.Replace(open.URL, "http:", "https:", 1), "it answers by http, not by https"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if got := Plain(err); err == nil || got.Error() != c.want {
			t.Errorf("%v: %v\nwant %s", err, got, c.want)
		}
		c.client.CloseIdleConnections()
	}
}
