package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/daycared/daycared/permissions"
)

// maxTokenFile is more than any file with one token has, in bytes.
const maxTokenFile = 4096

var errNoToken = errors.New("there is no token in it; it holds one line, which begins with dcd_a_")
var errNotRegular = errors.New("it is not a regular file")

// present adds the token to h, if the client has one. The file is read for every call, so that one token can replace
// another while somebody waits.
func (c *Client) present(h http.Header) (http.Header, error) {
	if c.TokenFile == "" {
		return h, nil
	}
	secret, err := readToken(c.TokenFile)
	if err != nil {
		return nil, &tokenFileError{file: c.TokenFile, err: err}
	}
	if h = h.Clone(); h == nil {
		h = http.Header{}
	}
	h.Set(headerToken, bearer+" "+string(secret))
	return h, nil
}

// tokenFileError says that there is no token to be had from the file just now.
type tokenFileError struct {
	file string
	err  error
}

func (e *tokenFileError) Error() string {
	return fmt.Sprintf("read the token file %s: %v", e.file, e.err)
}

// Unwrap gives the cause.
func (e *tokenFileError) Unwrap() error { return e.err }

// readToken reads a token and the line end behind it. No error tells what the file holds.
func readToken(file string) (permissions.Secret, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the account that asks names its own file
	if err != nil {
		return "", cause(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errNotRegular
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", cause(err)
	}
	secret := permissions.Secret(strings.TrimRight(string(text), "\r\n"))
	if _, ok := secret.Hash(); !ok {
		return "", errNoToken
	}
	return secret, nil
}

// cause is an error without the path, which has been told.
func cause(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
