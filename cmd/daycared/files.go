package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

var errNoFile = errors.New("it is not a regular file")

// openFile opens a regular file for reading, and nothing that could keep whoever opens or reads it waiting. The errors
// do not name it.
func openFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		return nil, errors.Join(cause(err), f.Close())
	}
	return f, nil
}

// cause is an error without the path, which has been told.
func cause(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// readSecret reads a file that holds one secret, without the space around it; what is in it, in words, is what. The error
// says what would be right, and holds nothing of the secret.
func readSecret(file, what string) (string, error) {
	f, err := os.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s does not exist; put %s there, in a file of mode 0600", file, what)
	case err != nil:
		return "", fmt.Errorf("%s cannot be read (%w); let the daemon's account read it, or name another file", file, cause(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return "", fmt.Errorf("%s is a folder; name the file in it", file)
	}
	text := make([]byte, maxSecret+1)
	n, err := f.Read(text)
	if n == 0 || strings.TrimSpace(string(text[:n])) == "" {
		return "", fmt.Errorf("%s is empty; put %s there", file, what)
	}
	return strings.TrimSpace(string(text[:n])), err
}

// maxSecret is the longest secret, in bytes: beyond it, it is some other file.
const maxSecret = 4096

// exposed says that others may read a file which holds a secret, and what to do about it; empty where they may not, or
// where the file cannot be looked at.
func exposed(file string) string {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("others may read %s (%#o); run: chmod 600 %s", file, info.Mode().Perm(), file)
}
